package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestClusterAway starts a router whose cluster does not answer: it is not ready, says
// so once, and ends when it is asked to.
func TestClusterAway(t *testing.T) {
	p := startListening(t, nil, "--kubeconfig", kubeconfig(t, "https://127.0.0.1:1"))
	p.line("the API server cannot be reached; what is known is served on")
	if status, _ := get(t, "http://"+p.admin+"/healthz/ready", ""); status != 500 {
		t.Errorf("ready without a cluster: %d", status)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestClusterWiring runs a router against a server that knows one route, whose
// certificate is in a secret. It shows that all packages are joined: the secret is asked
// for after a review for the right account, and status is written after the route is
// served. How each behaves is tested in its package and against a real API server.
func TestClusterWiring(t *testing.T) {
	api := &tinyAPI{wrote: make(chan string, 1)}
	server := httptest.NewTLSServer(api)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p := startListening(t, nil, "--kubeconfig", kubeconfig(t, server.URL), "--name", "sharded", "--namespace-labels", "served=yes", "--labels", "color=red", "--admin-open")
	p.line("ready")
	status := <-api.wrote
	for _, want := range []string{`"routerName":"sharded"`, `"host":"a.test"`, "does not have permission to get this secret"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %s in the status that is written: %s", want, status)
		}
	}
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); !strings.Contains(text, "turnout_status_writes_total{") {
		t.Error("nothing is counted of the status that is written")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, want := range []string{
		"GET /apis/route.openshift.io/v1/routes color=red", "GET /api/v1/services ", "GET /apis/discovery.k8s.io/v1/endpointslices kubernetes.io/service-name",
		"GET /api/v1/namespaces served=yes", "POST /apis/authorization.k8s.io/v1/subjectaccessreviews system:serviceaccount:here:me",
	} {
		if !api.asked[want] {
			t.Errorf("nobody asked for %s: %v", want, api.asked)
		}
	}
	if !strings.HasPrefix(api.agent, "turnout/") {
		t.Errorf("user agent %q", api.agent)
	}
}

// TestClusterOfKubectl finds its cluster by the words of kubectl alone: a list of files of which one is not there, and flags that win over them.
func TestClusterOfKubectl(t *testing.T) {
	for _, c := range []struct {
		name     string
		server   func(url string) string // of the file
		override func(url string) []string
	}{
		{"KUBECONFIG", func(url string) string { return url }, func(string) []string { return nil }},
		{"--server over KUBECONFIG", func(string) string { return "https://127.0.0.1:1" },
			func(url string) []string {
				return []string{"--server", url, "--insecure-skip-tls-verify", "--context=c"}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewTLSServer(&tinyAPI{wrote: make(chan string, 1)})
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			files := filepath.Join(t.TempDir(), "none") + ":" + kubeconfig(t, c.server(server.URL))
			p := startListening(t, []string{"KUBECONFIG=" + files}, append(c.override(server.URL), "--update-status=false", "--admin-open")...)
			p.line("ready")
			if _, text := get(t, "http://"+p.admin+"/routes", ""); !strings.Contains(text, "a.test") {
				t.Errorf("the route of the cluster is not there: %s", text)
			}
		})
	}
}

// TestAdminPortOfACluster asks who comes for a login, for /routes as for /metrics, unless it is open.
func TestAdminPortOfACluster(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(&tinyAPI{wrote: make(chan string, 1)})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	for _, c := range []struct {
		args   []string
		status int
	}{{nil, 403}, {[]string{"--admin-open=false"}, 403}, {[]string{"--admin-open"}, 200}} {
		p := startListening(t, nil, append(c.args, "--kubeconfig", kubeconfig(t, server.URL), "--update-status=false")...)
		p.line("ready")
		for path, want := range map[string]int{"/routes": c.status, "/routes/notes": c.status, "/routes/ns/r": c.status, "/metrics": c.status, "/healthz": 200} {
			if status, text := get(t, "http://"+p.admin+path, ""); status != want {
				t.Errorf("%v: %s: %d %q", c.args, path, status, text)
			}
		}
	}
}

// kubeconfig writes one for a server, with the token of service account here:me.
func kubeconfig(t *testing.T, server string) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:here:me"}`))
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: e30.%s.c2ln}}]
`, server, claims)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tinyAPI is an API server with one namespace and one route, which refuses all reviews.
type tinyAPI struct {
	wrote chan string // status patches

	mu    sync.Mutex
	asked map[string]bool
	agent string
}

func (a *tinyAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review struct {
		Spec struct {
			User string `json:"user"`
		} `json:"spec"`
	}
	var body json.RawMessage
	_ = json.NewDecoder(req.Body).Decode(&body) // empty for GET
	_ = json.Unmarshal(body, &review)
	a.mu.Lock()
	if a.asked == nil {
		a.asked = map[string]bool{}
	}
	a.asked[req.Method+" "+req.URL.Path+" "+req.FormValue("labelSelector")+review.Spec.User] = true
	a.agent = req.UserAgent()
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	plural := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	switch {
	case req.Method == http.MethodPatch:
		a.wrote <- string(body)
		<-req.Context().Done()
	case plural == "subjectaccessreviews":
		fmt.Fprint(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`)
	case req.FormValue("watch") != "":
		a.watch(w, req, plural)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// watch tells what there is, and that this is all.
func (a *tinyAPI) watch(w http.ResponseWriter, req *http.Request, plural string) {
	kinds := map[string]string{"routes": "route.openshift.io/v1 Route", "services": "v1 Service", "endpointslices": "discovery.k8s.io/v1 EndpointSlice", "namespaces": "v1 Namespace",
		"ingresses": "networking.k8s.io/v1 Ingress", "ingressclasses": "networking.k8s.io/v1 IngressClass"}
	version, kind, _ := strings.Cut(kinds[plural], " ")
	event := func(what, metadata, rest string) {
		fmt.Fprintf(w, `{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"5",%s}%s}}`+"\n", what, version, kind, metadata, rest)
	}
	switch plural {
	case "routes":
		event("ADDED", `"namespace":"ns","name":"r","uid":"u"`,
			`,"spec":{"host":"a.test","wildcardPolicy":"None","to":{"kind":"Service","name":"s"},"tls":{"termination":"edge","externalCertificate":{"name":"cert"}}}`)
	case "namespaces":
		event("ADDED", `"name":"ns","uid":"n"`, "")
	}
	event("BOOKMARK", `"annotations":{"k8s.io/initial-events-end":"true"}`, "")
	w.(http.Flusher).Flush()
	<-req.Context().Done()
}
