// Package router runs the turnout program as a process, and talks to it as its users do.
package router

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"turnout/test/cluster/process"
)

// patience is how long a router may take to do what a test waits for. It is long
// because tests share their machine; nothing waits for it to pass.
const patience = 60 * time.Second

// Config is how a router is started.
type Config struct {
	Binary string   // path of the turnout program
	IP     string   // where it listens, on ports 80, 443 and 1936
	Args   []string // flags besides the addresses
	Env    []string // environment
}

// Router is a running router. Its process ends with the test.
type Router struct {
	*process.Process
	IP    string
	Log   *Log
	admin *http.Client
}

// Start starts a router, and waits until it listens.
func Start(t testing.TB, cfg Config) *Router {
	t.Helper()
	r := &Router{IP: cfg.IP, Log: NewLog(), admin: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	args := append([]string{
		"run", "--http-addr", cfg.IP + ":80", "--https-addr", cfg.IP + ":443", "--admin-addr", cfg.IP + ":1936",
	}, cfg.Args...)
	if !slices.Contains(cfg.Args, "--stats-user") {
		args = append(args, "--admin-open") // tests of logins give a user
	}
	var err error
	r.Process, err = process.Start(process.Spec{Path: cfg.Binary, Args: args, Env: cfg.Env, Output: r.Log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(t) })
	r.WaitLog(t, `"msg":"listening"`)
	return r
}

// end ends the process, and shows its log if the test failed.
func (r *Router) end(t testing.TB) {
	_ = r.Resume()
	if err := r.Kill(); err != nil {
		t.Error(err)
	}
	text := r.Log.String()
	if strings.Contains(text, "WARNING: DATA RACE") || strings.Contains(text, "goroutine 1 [") {
		t.Errorf("router %s broke", r.IP)
	}
	if t.Failed() {
		t.Logf("log of router %s:\n%s", r.IP, text)
	}
}

// WaitLog waits for a line of the log that holds text.
func (r *Router) WaitLog(t testing.TB, text string) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	if err := r.Log.wait(text, r.Done(), timer.C); err != nil {
		t.Fatalf("router %s: %v", r.IP, err)
	}
}

// WaitReady waits until the router says that it is.
func (r *Router) WaitReady(t testing.TB) {
	t.Helper()
	r.WaitLog(t, `"msg":"ready"`)
	if code, text := r.Admin(t, "/healthz/ready"); code != http.StatusOK {
		t.Fatalf("router %s logs that it is ready and answers %d %s", r.IP, code, text)
	}
}

// Admin asks the admin server.
func (r *Router) Admin(t testing.TB, path string) (int, string) {
	t.Helper()
	return r.AdminAs(t, path, "")
}

// AdminAs is Admin for the holder of the token; "" = nobody.
func (r *Router) AdminAs(t testing.TB, path, token string) (int, string) {
	t.Helper()
	return r.AdminWith(t, http.MethodGet, path, "", func(q *http.Request) {
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
	})
}

// AdminWith sends the admin server a request with a body, which change may change.
func (r *Router) AdminWith(t testing.TB, method, path, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.IP+":1936"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	change(q)
	resp, err := r.admin.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Routes returns the routes as the router sees them, with their status.
func (r *Router) Routes(t testing.TB) map[string]routev1.Route {
	t.Helper()
	_, text := r.Admin(t, "/routes")
	var list []routev1.Route
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("cannot read /routes: %v", err)
	}
	routes := make(map[string]routev1.Route, len(list))
	for _, route := range list {
		routes[route.Namespace+"/"+route.Name] = route
	}
	return routes
}

// Metric returns the sum of a metric over its labels.
func (r *Router) Metric(t testing.TB, name string) float64 {
	t.Helper()
	_, text := r.Admin(t, "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("cannot read /metrics: %v", err)
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}
