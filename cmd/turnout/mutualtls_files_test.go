package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// replace makes text the content of path by a rename, as editors and the kubelet do: a router that
// watches the folder never reads a part of it.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

const judgedAnew, judgedAsBefore = "client certificates are judged anew", "client certificates are judged as before"

// wantServed fails unless these clients are served, or none of them is.
func (p *process) wantServed(want bool, clients ...*identityPair) {
	p.t.Helper()
	for _, c := range clients {
		status, _, err := present(p.https, "one.test", c.tls(), nil)
		if (err == nil && status == 200) != want {
			p.t.Errorf("%s: %d %v, want served %v", c.Cert.Subject.CommonName, status, err, want)
		}
	}
}

// wantRefused waits for the line of the log about a client, and fails unless it has this reason and subject.
func (p *process) wantRefused(reason, subject string) {
	p.t.Helper()
	line := p.line("client certificate is refused")
	client, _ := line["client"].(string)
	if message, _ := line["error"].(string); line["reason"] != reason || !strings.Contains(message, subject) ||
		line["server_name"] != "one.test" || !strings.HasPrefix(client, "127.0.0.1:") {
		p.t.Errorf("%v, want %s because of %s", line, subject, reason)
	}
}

// listEnd is when the revocation list in a file ends.
func listEnd(t *testing.T, file string) time.Time {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return list.NextUpdate
}

// TestClientAuthoritiesChange: the file of authorities is followed. One that is torn or gone leaves what there was.
func TestClientAuthoritiesChange(t *testing.T) {
	first, second := issue(t, nil, "CN=first"), issue(t, nil, "CN=second")
	ofFirst, ofSecond := issue(t, first, "CN=a"), issue(t, second, "CN=b")
	file := write(t, t.TempDir(), "ca.pem", []byte(first.pem))
	p := startRouter(t, []string{"ROUTER_MUTUAL_TLS_AUTH=required", "ROUTER_MUTUAL_TLS_AUTH_CA=" + file}, "run", "--manifests", echoSite(t))
	p.wantServed(true, ofFirst)
	p.wantServed(false, ofSecond)
	replace(t, file, []byte(first.pem+second.pem))
	p.line(judgedAnew)
	p.wantServed(true, ofFirst, ofSecond)
	replace(t, file, []byte(second.pem+strings.Replace(first.pem, "MII", "!!!", 1)+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	if line := p.line(judgedAsBefore); !strings.Contains(line["error"].(string), file) {
		t.Errorf("%v does not name the file", line)
	}
	p.wantServed(true, ofFirst, ofSecond)
	replace(t, file, []byte(first.pem+second.pem[:len(second.pem)/2])) // half written
	if line := p.line(judgedAsBefore); !strings.Contains(line["error"].(string), "1 of 2 PEM blocks") {
		t.Errorf("%v does not say that the file is torn", line)
	}
	p.wantServed(true, ofFirst, ofSecond)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.line(judgedAsBefore)
	p.wantServed(true, ofFirst, ofSecond)
	replace(t, file, []byte(second.pem))
	p.line(judgedAnew)
	p.wantServed(false, ofFirst)
	p.wantServed(true, ofSecond)
}

// TestRevocationListFile: lists of a file are used in place, for every certificate of a chain.
func TestRevocationListFile(t *testing.T) {
	ca := issue(t, nil, "CN=ca", points("http://nobody.invalid/crl")) // a file wins: nothing is fetched
	other := issue(t, nil, "CN=other")
	good, bad, foreign := issue(t, ca, "CN=good"), issue(t, ca, "CN=bad"), issue(t, other, "CN=foreign")
	dir := t.TempDir()
	authorities := write(t, dir, "ca.pem", []byte(ca.pem+other.pem))
	file := write(t, t.TempDir(), "crl.pem", ca.revoke(t, bad))
	p := startRouter(t, []string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + authorities, "ROUTER_MUTUAL_TLS_AUTH_CRL=" + file}, "run", "--manifests", echoSite(t))
	p.wantServed(true, good)
	p.wantServed(false, bad)
	p.wantRefused("revoked", "CN=bad")
	end := listEnd(t, file)
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); !strings.Contains(text, "turnout_client_certificates_refused_total{reason=\"revoked\"} 1\n") ||
		!strings.Contains(text, fmt.Sprintf("turnout_client_revocation_list_expiry_timestamp_seconds{issuer=\"CN=ca\"} %v\n", float64(end.Unix()))) {
		t.Errorf("metrics do not tell of CN=bad and of the list until %v:\n%s", end, text)
	}
	p.wantServed(false, foreign)
	replace(t, file, append(ca.revoke(t, bad, good), other.revoke(t)...))
	p.line(judgedAnew)
	p.wantServed(true, foreign)
	p.wantServed(false, bad, good)
	replace(t, file, []byte("torn"))
	p.line(judgedAsBefore)
	p.wantServed(true, foreign)
	p.wantServed(false, bad, good)
}

// TestRevocationListsAreFetched: before the first complete update every certificate is refused and the rest works.
func TestRevocationListsAreFetched(t *testing.T) {
	var list atomic.Pointer[[]byte]
	asked := make(chan string, 100)
	answer := make(chan struct{})
	points1 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		select {
		case <-answer:
			_, _ = w.Write(*list.Load())
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(points1.Close)
	ca := issue(t, nil, "CN=ca", points("ldap://127.0.0.1/crl", points1.URL+"/missing", points1.URL+"/list"))
	good, bad := issue(t, ca, "CN=good"), issue(t, ca, "CN=bad")
	crl := ca.revoke(t, bad)
	list.Store(&crl)
	file := write(t, t.TempDir(), "ca.pem", []byte(ca.pem))
	p := startRouter(t, []string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + file}, "run", "--manifests", echoSite(t))
	for _, want := range []string{"/missing", "/list"} {
		if got := <-asked; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
	p.wantServed(false, good, bad)
	p.wantRefused("no-list", "CN=good")
	if status, body, err := present(p.https, "one.test", nil, nil); status != 200 || body != fields(nil, "") {
		t.Errorf("no certificate: %d %v", status, err)
	}
	if status, _ := get(t, "http://"+p.http+"/", "plain.test"); status != 200 {
		t.Errorf("plain HTTP: %d", status)
	}
	close(answer)
	if line := p.line(judgedAnew); line["revocation_lists"] != 1.0 {
		t.Errorf("%v", line)
	}
	p.wantServed(true, good)
	p.wantServed(false, bad)
}

// TestWhatMutualTLSRefusesAtStart names the variable, the file and what is allowed.
func TestWhatMutualTLSRefusesAtStart(t *testing.T) {
	ca := issue(t, nil, "CN=ca")
	dir := t.TempDir()
	good := write(t, dir, "ca.pem", []byte(ca.pem))
	torn, empty := write(t, dir, "torn.pem", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")), write(t, dir, "empty.pem", nil)
	missing := filepath.Join(dir, "none.pem")
	secrets := t.TempDir()
	write(t, secrets, "current", []byte("short"))
	for _, c := range []struct {
		env    []string
		status int
		want   []string
	}{
		{[]string{"ROUTER_MUTUAL_TLS_AUTH=yes"}, 2, []string{`ROUTER_MUTUAL_TLS_AUTH="yes"`, "allowed: none, optional, required"}},
		{[]string{"ROUTER_MUTUAL_TLS_AUTH=required", "ROUTER_MUTUAL_TLS_AUTH_CA=" + missing}, 1, []string{"ROUTER_MUTUAL_TLS_AUTH_CA", missing, "allowed: a file of certificates in PEM"}},
		{[]string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + torn}, 1, []string{"ROUTER_MUTUAL_TLS_AUTH_CA", torn, "PEM block 1", "allowed: "}},
		{[]string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + empty}, 1, []string{"ROUTER_MUTUAL_TLS_AUTH_CA", empty, "no CERTIFICATE block", "allowed: "}},
		{[]string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + good, "ROUTER_MUTUAL_TLS_AUTH_CRL=" + good}, 1, []string{"ROUTER_MUTUAL_TLS_AUTH_CRL", good, "no X509 CRL block", "allowed: "}},
		{[]string{"ROUTER_MUTUAL_TLS_AUTH_FILTER=CN=(?!x)"}, 2, []string{"ROUTER_MUTUAL_TLS_AUTH_FILTER", `"(?!"`, "negative look-ahead", "allowed: "}},
		{[]string{"TURNOUT_TLS_TICKET_KEYS_DIR=" + secrets}, 1, []string{"TURNOUT_TLS_TICKET_KEYS_DIR", secrets, "current holds 5 bytes", "allowed: "}},
		{[]string{"TURNOUT_TLS_TICKET_KEYS_DIR=" + dir}, 1, []string{"TURNOUT_TLS_TICKET_KEYS_DIR", "allowed: "}},
	} {
		cmd := turnout(t, "turnout", c.env, append([]string{"run", "--manifests", t.TempDir()}, anyPorts...)...)
		var out bytes.Buffer
		cmd.Stderr = &out
		if got := statusOf(t, cmd.Run()); got != c.status {
			t.Errorf("%v: status %d, want %d", c.env, got, c.status)
		}
		text := strings.ReplaceAll(out.String(), `\"`, `"`)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %s does not say %s", c.env, text, want)
			}
		}
	}
}

func TestMutualOptionsThatDoNothing(t *testing.T) {
	_, warnings, err := parseOptions(nil, envOf("ROUTER_MUTUAL_TLS_AUTH_CA", "/x", "ROUTER_MUTUAL_TLS_AUTH_FILTER", "CN=x"))
	all := strings.Join(warnings, "\n")
	if err != nil || !strings.Contains(all, "ROUTER_MUTUAL_TLS_AUTH_CA) does nothing") || !strings.Contains(all, "ROUTER_MUTUAL_TLS_AUTH_FILTER) does nothing") {
		t.Errorf("%q %v", warnings, err)
	}
	if _, warnings, err = parseOptions(nil, envOf("ROUTER_MUTUAL_TLS_AUTH_CA", "/x", "ROUTER_MUTUAL_TLS_AUTH", "required")); len(warnings) > 0 || err != nil {
		t.Errorf("%q %v", warnings, err)
	}
}

// TestRoutesMayNotChangeWhatTheRouterAsks: where all clients are asked for certificates, routes are judged so.
func TestRoutesMayNotChangeWhatTheRouterAsks(t *testing.T) {
	for mode, want := range map[string]bool{"none": false, "optional": true, "required": true} {
		o, _, err := parseOptions(nil, envOf("ROUTER_MUTUAL_TLS_AUTH", mode))
		if err != nil || o.controllerOptions().AsksClients != want {
			t.Errorf("%s: %v, %v", mode, o.controllerOptions().AsksClients, err)
		}
	}
}

// TestRoutersShareSessions: two processes with the same secrets resume each other's sessions, also after the secrets were
// replaced, and one with others does not.
func TestRoutersShareSessions(t *testing.T) {
	t.Parallel()
	secret := func(s string) []byte { return []byte(strings.Repeat(s, 32)) }
	shared, alone, site := t.TempDir(), t.TempDir(), echoSite(t)
	write(t, shared, "current", secret("a"))
	write(t, shared, "previous", secret("a"))
	write(t, alone, "current", secret("z"))
	var routers []*process
	for _, dir := range []string{shared, shared, alone} {
		routers = append(routers, startRouter(t, []string{"TURNOUT_TLS_TICKET_KEYS_DIR=" + dir}, "run", "--manifests", site))
	}
	cache := tls.NewLRUClientSessionCache(1)
	resumed := func(p *process, want bool) {
		t.Helper()
		var got bool
		status, _, err := present(p.https, "one.test", nil, func(c *tls.Config) {
			c.ClientSessionCache = cache
			c.VerifyConnection = func(cs tls.ConnectionState) error { got = cs.DidResume; return nil }
		})
		if status != 200 || err != nil || got != want {
			t.Errorf("%d %v, resumed %v, want %v", status, err, got, want)
		}
	}
	resumed(routers[0], false)
	resumed(routers[1], true)
	resumed(routers[2], false)
	resumed(routers[0], false)
	replace(t, filepath.Join(shared, "current"), secret("b"))
	for _, p := range routers[:2] {
		p.line("keys of session tickets changed")
	}
	resumed(routers[1], true)
	resumed(routers[0], true)
	if err := os.Remove(filepath.Join(shared, "current")); err != nil {
		t.Fatal(err)
	}
	routers[0].line("keys of session tickets stay as they were")
	resumed(routers[0], true)
}

// TestRevokedWhileConnected shows the behaviour as it is: a connection that stands is not judged again, the next one is.
func TestRevokedWhileConnected(t *testing.T) {
	ca := issue(t, nil, "CN=ca")
	client := issue(t, ca, "CN=client")
	dir := t.TempDir()
	authorities, file := write(t, dir, "ca.pem", []byte(ca.pem)), write(t, dir, "crl.pem", ca.revoke(t))
	p := startRouter(t, []string{"ROUTER_MUTUAL_TLS_AUTH=required", "ROUTER_MUTUAL_TLS_AUTH_CA=" + authorities, "ROUTER_MUTUAL_TLS_AUTH_CRL=" + file}, "run", "--manifests", echoSite(t))
	cache := tls.NewLRUClientSessionCache(1)
	session := func(c *tls.Config) { c.ClientSessionCache = cache }
	standing := &http.Client{Transport: &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			return tls.Dial("tcp", p.https, &tls.Config{ServerName: "one.test", InsecureSkipVerify: true, Certificates: client.tls()})
		},
	}}
	visit := func() error {
		resp, err := standing.Get("https://one.test/")
		if err != nil {
			return err
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		if resp.StatusCode != 200 {
			err = errors.New(resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	}
	if err := visit(); err != nil {
		t.Fatal(err)
	}
	if status, _, err := present(p.https, "one.test", client.tls(), session); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	replace(t, file, ca.revoke(t, client))
	p.line(judgedAnew)
	if err := visit(); err != nil {
		t.Errorf("the connection that stands: %v", err)
	}
	if _, _, err := present(p.https, "one.test", client.tls(), session); err == nil || !strings.Contains(err.Error(), "bad certificate") {
		t.Errorf("the session is resumed: %v", err)
	}
}
