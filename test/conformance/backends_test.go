package conformance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// named starts a pod that answers with its name and the field X-In of the request.
func named(t *testing.T, name string) []balancer.Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, name+q.Header.Get("X-In"))
	}))
	t.Cleanup(s.Close)
	return []balancer.Target{{ID: name, Addr: testaddr.Parse(strings.TrimPrefix(s.URL, "http://")), Weight: 1}}
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

// recovering is a pod that answers 503 to the first requests of each path, after a time, and then 200 with the number of the request.
func recovering(t *testing.T, failures int, delay time.Duration) []balancer.Target {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		seen[q.URL.Path]++
		n := seen[q.URL.Path]
		mu.Unlock()
		if n > failures {
			_, _ = fmt.Fprintf(w, "%d %s", n, body)
			return
		}
		select {
		case <-time.After(delay):
		case <-q.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, strings.Repeat("not yet ", 1000))
	}))
	t.Cleanup(s.Close)
	return []balancer.Target{{ID: "pod", Addr: testaddr.Parse(strings.TrimPrefix(s.URL, "http://")), Weight: 1}}
}

// TestRetriesOverSockets: requests, with their bodies, come to an answer though the first ones are of a code that is asked to be tried again, or do not come in time.
func TestRetriesOverSockets(t *testing.T) {
	router := testkit.StartRouter(t, 1, nil)
	for name, c := range map[string]struct {
		failures int
		delay    time.Duration
		attempt  time.Duration
		request  time.Duration
		status   int
		body     string
	}{
		"codes":                    {2, 0, 0, 0, 200, "3 content"},
		"the last one":             {3, 0, 0, 0, 503, strings.Repeat("not yet ", 1000)},
		"attempts that are late":   {1, time.Minute, 50 * time.Millisecond, 0, 200, "2 content"},
		"a request that is late":   {1, time.Minute, 0, 50 * time.Millisecond, 504, ""},
		"attempts, and no time is": {9, time.Minute, 30 * time.Millisecond, 80 * time.Millisecond, 504, ""},
	} {
		t.Run(name, func(t *testing.T) {
			router.PublishRules(t, ruleOf(func(s *routing.RuleSpec) {
				s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 2, Backoff: time.Millisecond}
				s.Policy.AttemptTimeout, s.Policy.RequestTimeout = c.attempt, c.request
				s.Backends = []routing.BackendSpec{{Key: "v1", Weight: 1, Targets: recovering(t, c.failures, c.delay)}}
			}))
			status, _, body := ask(t, router, func(q *http.Request) {
				q.Method, q.Body, q.ContentLength = http.MethodPut, io.NopCloser(strings.NewReader("content")), 7
			})
			if status != c.status || c.body != "" && body != c.body {
				t.Errorf("%d %q", status, body)
			}
		})
	}
}

// TestCORSOverSockets asks what a browser asks.
func TestCORSOverSockets(t *testing.T) {
	rule, err := cors.New(cors.Config{Origins: []string{"https://www.foo.com"}, Methods: []string{"*"}, MaxAge: 3600})
	if err != nil {
		t.Fatal(err)
	}
	router := testkit.StartRouter(t, 1, nil)
	router.PublishRules(t, ruleOf(func(s *routing.RuleSpec) {
		s.Policy.CORS, s.Targets = rule, named(t, "v1")
	}))
	status, fields, body := ask(t, router, func(q *http.Request) {
		q.Method = http.MethodOptions
		q.Header.Set("Origin", "https://www.foo.com")
		q.Header.Set("Access-Control-Request-Method", "POST")
	})
	if status != http.StatusOK || body != "" || fields.Get("Access-Control-Allow-Origin") != "https://www.foo.com" || fields.Get("Access-Control-Allow-Methods") != "POST" || fields.Get("Access-Control-Max-Age") != "3600" {
		t.Errorf("%d %v %q", status, fields, body)
	}
	for origin, want := range map[string]string{"https://www.foo.com": "https://www.foo.com", "https://foobar.com": ""} {
		status, fields, body = ask(t, router, func(q *http.Request) { q.Header.Set("Origin", origin) })
		if status != http.StatusOK || body != "v1" || fields.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%s: %d %v %q", origin, status, fields, body)
		}
	}
}

// mirrorPod is a pod that says what it got; a slow one answers when the test is over.
func mirrorPod(t *testing.T, slow bool) (targets []balancer.Target, got chan string) {
	t.Helper()
	got = make(chan string, 1000)
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		got <- fmt.Sprintf("%s %s %s %s", q.Method, q.URL, q.Header.Get("X-In"), body)
		if slow {
			<-over
		}
	}))
	t.Cleanup(func() {
		close(over)
		s.Close()
	})
	return []balancer.Target{{ID: "mirror", Addr: testaddr.Parse(strings.TrimPrefix(s.URL, "http://")), Weight: 1}}, got
}

// TestMirrorsOverSockets: copies come whole, and a mirror that takes its time, or is not there, delays nobody.
func TestMirrorsOverSockets(t *testing.T) {
	in, errs := header.Compile(header.Request, []header.Action{{Name: "X-In", Value: "!"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	router := testkit.StartRouter(t, 1, nil)
	first, firstGot := mirrorPod(t, true)
	second, secondGot := mirrorPod(t, false)
	router.PublishRules(t, ruleOf(func(s *routing.RuleSpec) {
		s.Policy.RequestActions = in
		s.Backends = []routing.BackendSpec{{Key: "v1", Weight: 1, Targets: named(t, "v1")}}
		s.Mirrors = []routing.MirrorSpec{
			{Key: "first", Targets: first}, {Key: "second", Targets: second},
			{Key: "gone", Targets: []balancer.Target{{ID: "gone", Addr: testaddr.Parse("127.0.0.1:1"), Weight: 1}}},
		}
	}))
	content := strings.Repeat("0123456789", 5000)
	for i := range 5 {
		began := time.Now()
		status, _, body := ask(t, router, func(q *http.Request) {
			q.Method, q.URL.RawQuery, q.Body, q.ContentLength = http.MethodPost, fmt.Sprint("n=", i), io.NopCloser(strings.NewReader(content)), -1
		})
		if status != http.StatusOK || body != "v1!" || time.Since(began) > 20*time.Second {
			t.Errorf("%d %q after %v", status, body, time.Since(began))
		}
		for _, got := range []chan string{firstGot, secondGot} {
			select {
			case text := <-got:
				if want := fmt.Sprintf("POST /?n=%d ! %s", i, content); text != want {
					t.Errorf("a mirror got %.100q", text)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("a mirror got nothing")
			}
		}
	}
}

// TestSessionsOverSockets: a client that says the field of its answers again comes to the same pod, whatever the weights.
func TestSessionsOverSockets(t *testing.T) {
	router := testkit.StartRouter(t, 2, nil)
	router.PublishRules(t, ruleOf(func(s *routing.RuleSpec) {
		s.CookieName, s.Policy.SessionHeader, s.Policy.SessionTimeout = "x-session", carriedName("x-session"), time.Hour
		s.Backends = []routing.BackendSpec{{Key: "v1", Weight: 1, Targets: named(t, "v1")}, {Key: "v2", Weight: 1, Targets: named(t, "v2")}}
	}))
	seen := map[string]bool{}
	for range 10 {
		_, fields, first := ask(t, router, nil)
		seen[first] = true
		for range 5 {
			_, again, body := ask(t, router, func(q *http.Request) { q.Header.Set("X-Session", fields.Get("X-Session")) })
			if body != first || again.Get("X-Session") != "" {
				t.Errorf("%s, and then %s; %q is given", first, body, again.Get("X-Session"))
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("new clients come to %v alone", seen)
	}
}

// carriedName returns a name that a session may have.
func carriedName(text string) field.CarriedName {
	name, err := field.NewCarriedName(text)
	if err != nil {
		panic(err)
	}
	return name
}
