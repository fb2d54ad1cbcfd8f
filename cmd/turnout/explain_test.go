package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnout/internal/explain"
	"turnout/internal/testkit/testcert"
)

// faultyRoute is a route of service to NAME.test with more lines of its spec and annotations.
func faultyRoute(namespace, name, host, service, spec string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  namespace: %s\n  name: %s\n", namespace, name)
	if len(annotations) > 0 {
		text += "  annotations:\n    " + strings.Join(annotations, "\n    ") + "\n"
	}
	return text + fmt.Sprintf("spec:\n  host: %s\n  to: {kind: Service, name: %s}\n%s---\n", host, service, spec)
}

// deadAddr is an address where nobody listens.
func deadAddr(t *testing.T) net.Addr {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr()
}

// twoPods is a service of two pods.
func twoPods(service string, a, b net.Addr) string {
	one, other := a.(*net.TCPAddr), b.(*net.TCPAddr)
	second := strings.NewReplacer(service+"-1", service+"-2", fmt.Sprint("port: ", one.Port), fmt.Sprint("port: ", other.Port))
	text := slice(service, a)
	_, slices, _ := strings.Cut(text, "---\n")
	return text + second.Replace(slices)
}

// planted is a folder with nine faults; the tenth, a route of another shard, needs a cluster.
func planted(t *testing.T) string {
	pod := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(pod.Close)
	good := pod.Listener.Addr()
	expired := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "expired.test"}, DNSNames: []string{"expired.test"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}, nil)
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	indent := func(pem string) string {
		return "      " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n      ") + "\n"
	}
	const prefix = "haproxy.router.openshift.io/"
	text := slice("good", good) + slice("dead", deadAddr(t)) + twoPods("half", good, deadAddr(t)) + boxPod(t, ca, "secure.default.svc") +
		faultyRoute("default", "dead", "dead.test", "dead", "") +
		faultyRoute("default", "port", "port.test", "good", "  port: {targetPort: wrong}\n") +
		faultyRoute("default", "first", "claimed.test", "good", "") +
		faultyRoute("elsewhere", "second", "claimed.test", "good", "  path: /mine\n") +
		faultyRoute("default", "expired", "expired.test", "good", "  tls:\n    termination: edge\n    certificate: |\n"+indent(expired.PEM())+"    key: |\n"+indent(expired.KeyPEM(t))) +
		faultyRoute("default", "ca", "ca.test", "secure", "  tls:\n    termination: reencrypt\n    destinationCACertificate: |\n"+indent(other.pem)) +
		faultyRoute("default", "list", "list.test", "good", "", prefix+"ip_whitelist: 10.0.0.0/8") +
		faultyRoute("default", "rate", "rate.test", "good", "", prefix+`rate-limit-connections: "true"`, prefix+`rate-limit-connections.rate-http: "3"`) +
		faultyRoute("default", "path", "path.test", "good", "  path: /app\n") +
		faultyRoute("default", "ejected", "ejected.test", "half", "", prefix+"balance: roundrobin", "router.openshift.io/haproxy.health.check.interval: 1h")
	return filepath.Dir(write(t, t.TempDir(), "all.yaml", []byte(text)))
}

// explainCommand runs `turnout explain` and returns what it prints.
func explainCommand(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := command(context.Background(), append([]string{"turnout", "explain"}, args...), envOf(), &stdout, &stderr); status != 0 {
		t.Fatalf("explain %q: status %d, %s", args, status, stderr.String())
	}
	return stdout.String()
}

// explained is the JSON that it prints.
func explained(t *testing.T, args ...string) *explain.Answer {
	t.Helper()
	a := new(explain.Answer)
	if err := json.Unmarshal([]byte(explainCommand(t, append(args, "-o", "json")...)), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// finds reports whether a finding has this reason and says this.
func finds(a *explain.Answer, reason, says string) bool {
	for _, f := range a.Findings {
		if f.Reason == reason && strings.Contains(f.Text, says) && strings.HasSuffix(f.Help, "#"+reason) {
			return true
		}
	}
	return false
}

// TestPlantedFaults: one explain command finds each of ten faults. The last one is TestOtherShard.
func TestPlantedFaults(t *testing.T) {
	p := startRouter(t, nil, "run", "--manifests", planted(t))
	client := browser(t, p.https, "http/1.1")
	for _, c := range []struct {
		url    string
		before func() // what clients do, so that there is a fault
		status int    // the router's; 0 = it closes the connection, or the pod answers
		reason string
		says   string
	}{
		{"http://dead.test/", func() { get(t, "http://"+p.http+"/", "dead.test") }, 0, "connect-failed", "127.0.0.1:"},
		{"http://port.test/", nil, 503, "no-endpoint", "no port of that name"},
		{"http://claimed.test/mine", nil, 0, "older-claim", "elsewhere/second"},
		{"https://expired.test/", nil, 0, "certificate-expired", "CN="},
		{"https://ca.test/", func() {
			if resp, err := client.Get("https://ca.test/"); err == nil {
				resp.Body.Close()
			}
		}, 0, "tls-failed", "tls-untrusted"},
		{"http://list.test/", nil, 0, "denied", "127.0.0.1"},
		{"http://rate.test/", func() {
			for range 3 {
				get(t, "http://"+p.http+"/", "rate.test")
			}
		}, 0, "rate-limited", "3 requests within 10 s"},
		{"http://path.test/other", nil, 503, "no-route", "its path /app does not cover"},
	} {
		if c.before != nil {
			c.before()
		}
		a := explained(t, "--router", p.admin, c.url)
		if !finds(a, c.reason, c.says) || a.Outcome.Status != c.status {
			t.Errorf("%s: status %d, %+v; want %d, %s %q", c.url, a.Outcome.Status, a.Findings, c.status, c.reason, c.says)
		}
	}
	// A pod is ejected for a second or two, more often the longer it fails.
	for tries := 0; ; tries++ {
		for range 8 {
			get(t, "http://"+p.http+"/", "ejected.test")
		}
		a := explained(t, "--router", p.admin, "http://ejected.test/")
		if finds(a, "endpoint-ejected", "127.0.0.1:") {
			break
		}
		if tries == 20 {
			t.Fatalf("the ejected pod is not found: %+v", a)
		}
	}
	text := explainCommand(t, "--router", p.admin, "http://dead.test/")
	for _, want := range []string{"Finding        connect-failed: a request failed at 127.0.0.1:", "Candidates     + default/dead (dead.test) http", "see docs/troubleshooting.md#connect-failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	stories(t, p)
}

// stories asks for past requests.
func stories(t *testing.T, p *process) {
	list := explainCommand(t, "--router", p.admin, "--request", "")
	if !strings.Contains(list, "ca.test") || !strings.Contains(list, "tls-failed (tls-untrusted)") {
		t.Errorf("the failed request is not remembered:\n%s", list)
	}
	_, id, _ := strings.Cut(list, "id ")
	id, _, _ = strings.Cut(id, "\n")
	if story := explainCommand(t, "--router", p.admin, "--request", id); !strings.Contains(story, "remembered because it is failed") {
		t.Errorf("story of %s:\n%s", id, story)
	}
	var stdout, stderr bytes.Buffer
	if status := command(context.Background(), []string{"turnout", "explain", "--router", p.admin, "--request", "no-such-id"}, envOf(), &stdout, &stderr); status != 1 || !strings.Contains(stderr.String(), "no such request is remembered") {
		t.Errorf("a request that nobody knows: %d %s", status, stderr.String())
	}
}

// TestExplainFolder explains by a folder what a router would do with it, and what a change would do.
func TestExplainFolder(t *testing.T) {
	dir := planted(t)
	a := explained(t, "--manifests", dir, "https://expired.test/x?secret=1", "--header", "Authorization: Bearer abc", "--header", "X-A: 1", "--cookie", "b=secret")
	if !finds(a, "certificate-expired", "CN=") || a.Route == nil || a.Route.Name != "expired" {
		t.Errorf("%+v", a)
	}
	if text := fmt.Sprintf("%+v %+v", a.Request, a.Forwarded); strings.Contains(text, "abc") || strings.Contains(text, "secret=1") || strings.Contains(text, "=secret") || !strings.Contains(text, "x-a: 1") {
		t.Errorf("secrets are shown: %s", text)
	}
	change := write(t, t.TempDir(), "change.yaml", []byte(faultyRoute("default", "path", "path.test", "good", "  path: /\n")+
		faultyRoute("new", "new", "new.test", "good", "")))
	a = explained(t, "--manifests", dir, "--with", change, "http://path.test/other")
	if a.Outcome.Reason != "no-route" || a.Change == nil || a.Change.Outcome.By != explain.ByEndpoint || len(a.Difference) == 0 || a.Difference[0] != "outcome: 503, no-route -> answered by a pod" {
		t.Errorf("%+v\n%+v", a, a.Change)
	}
	diff := explainCommand(t, "--manifests", dir, "--with", change, "--diff")
	for _, want := range []string{"http://new.test/\n    outcome: 503, no-route -> 503, no-endpoint\n    route: new/new\n", "http://path.test/\n    outcome: 503, no-route -> answered by a pod\n", "\n2 of 22 requests"} {
		if !strings.Contains(diff, want) {
			t.Errorf("no %q in\n%s", want, diff)
		}
	}
	p := startRouter(t, nil, "run", "--manifests", dir)
	if running := explainCommand(t, "--router", p.admin, "--with", change, "--diff"); running != diff {
		t.Errorf("a running router says\n%s\nand the folder\n%s", running, diff)
	}
	if got := explained(t, "--router", p.admin, "--with", change, "http://path.test/other"); got.Change == nil || got.Change.Outcome.By != explain.ByEndpoint {
		t.Errorf("%+v", got)
	}
	if got := explained(t, "--router", p.admin, "http://path.test/other"); got.Outcome.Reason != "no-route" {
		t.Errorf("the change was made: %+v", got)
	}
}

// TestExplainHead explains a head as it is sent, from a file.
func TestExplainHead(t *testing.T) {
	dir := planted(t)
	head := write(t, t.TempDir(), "head", []byte("GET /other HTTP/1.1\r\nHost: path.test\r\nHost: other.test\r\n\r\n"))
	if a := explained(t, "--manifests", dir, "--head", head); a.Outcome.Reason != "bad-request" || a.Outcome.Status != 400 || a.Outcome.Detail == "" {
		t.Errorf("%+v", a.Outcome)
	}
	if _, help, _ := told("explain", "--help"); !strings.Contains(help, "--with FILE") || strings.Contains(help, "--strict-sni") {
		t.Errorf("%s", help)
	}
}

func TestExplainUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "explain needs one URL, and 0 are given"},
		{[]string{"http://a", "http://b"}, "2 are given"},
		{[]string{"--head", "x", "http://a"}, "takes the place of a URL"},
		{[]string{"--diff"}, "--diff needs --with FILE"},
		{[]string{"--request", "1", "http://a"}, "take no URL"},
		{[]string{"--client", "x", "http://a"}, `--client "x" is not valid; allowed: an address`},
		{[]string{"-o", "yaml", "http://a"}, "allowed: text"},
		{[]string{"--manifests", ".", "--request", "1"}, "asks a running router"},
		{[]string{"--manifests", ".", "ftp://a"}, `the URL has the scheme "ftp"; allowed: http, https`},
		{[]string{"--router", "127.0.0.1:1", "http://a"}, "cannot ask the router"},
	} {
		var stdout, stderr bytes.Buffer
		if status := command(context.Background(), append([]string{"turnout", "explain"}, c.args...), envOf(), &stdout, &stderr); status == 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q: %d %s", c.args, status, stderr.String())
		}
	}
}

// shardAPI is a tinyAPI that has another route, which is not among those that the router asks for.
type shardAPI struct{ tinyAPI }

func (a *shardAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.FormValue("fieldSelector") != "spec.host=b.test" {
		a.tinyAPI.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"RouteList","apiVersion":"route.openshift.io/v1","metadata":{},"items":[{"metadata":{"namespace":"other","name":"blue","uid":"b"},`+
		`"spec":{"host":"b.test","to":{"kind":"Service","name":"s"}}}]}`)
}

// TestOtherShard: a route that a router does not select is found, by the router and by its kubeconfig.
func TestOtherShard(t *testing.T) {
	server := httptest.NewTLSServer(&shardAPI{})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := kubeconfig(t, server.URL)
	p := startListening(t, nil, "--kubeconfig", config, "--labels", "color=red", "--admin-open", "--update-status=false")
	p.line("ready")
	for _, from := range [][]string{{"--router", p.admin}, {"--kubeconfig", config, "--labels", "color=red"}} {
		a := explained(t, append(from, "http://b.test/")...)
		if !finds(a, "other-shard", "other/blue") || a.Outcome.Reason != "no-route" {
			t.Errorf("%q: %+v", from, a)
		}
		if a = explained(t, append(from, "https://a.test/")...); !finds(a, "rejected", "ns/r") {
			t.Errorf("%q: the route that is rejected: %+v", from, a)
		}
	}
}
