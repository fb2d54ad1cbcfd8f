package conformance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"turnout/balancer"
	"turnout/internal/testkit"
	"turnout/routing"
	"turnout/routing/header"
)

// named starts a pod that answers with its name and the field X-In of the request.
func named(t *testing.T, name string) []balancer.Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, name+q.Header.Get("X-In"))
	}))
	t.Cleanup(s.Close)
	return []balancer.Target{{ID: name, Addr: netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://")), Weight: 1}}
}

// ruleOf is the rule of app.test.
func ruleOf(change func(s *routing.RuleSpec)) routing.RuleSpec {
	spec := testkit.Spec("app.test")
	rule := spec.Rule()
	change(&rule)
	return rule
}

// ask sends a request for app.test.
func ask(t *testing.T, router *testkit.Router, change func(q *http.Request)) (status int, header http.Header, body string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s/", router.Addr), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "app.test"
	if change != nil {
		change(q)
	}
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Error(err)
		return 0, nil, ""
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Error(err)
	}
	return a.StatusCode, a.Header, string(text)
}

// TestBackendsOverSockets is the weight test of the Gateway API's conformance suite: 500 requests, ten at a time, of which each
// backend must have its share but for five points; with a backend that cannot be used, and fields of one backend.
func TestBackendsOverSockets(t *testing.T) {
	router := testkit.StartRouter(t, 2, nil)
	in, errs := header.Compile(header.Request, []header.Action{{Name: "X-In", Value: "!"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	router.PublishRules(t, ruleOf(func(s *routing.RuleSpec) {
		s.Backends = []routing.BackendSpec{
			{Key: "v1", Weight: 60, Targets: named(t, "v1")}, {Key: "v2", Weight: 30, Targets: named(t, "v2"), RequestActions: in},
			{Key: "v3", Targets: named(t, "v3")}, {Key: "gone", Weight: 10, Status: 500},
		}
	}))
	var mu sync.Mutex
	var clients sync.WaitGroup
	got := map[string]int{}
	for range 10 {
		clients.Go(func() {
			for range 50 {
				status, _, body := ask(t, router, nil)
				if status != http.StatusOK {
					body = fmt.Sprint(status)
				}
				mu.Lock()
				got[body]++
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	for what, want := range map[string]int{"v1": 300, "v2!": 150, "500": 50} {
		if d := got[what] - want; d < -25 || d > 25 {
			t.Errorf("%s: %d of 500, want %d: %v", what, got[what], want, got)
		}
		delete(got, what)
	}
	if len(got) > 0 {
		t.Errorf("and %v", got)
	}
}
