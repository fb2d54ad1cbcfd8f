package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"turnout/internal/bound"
)

// reviewAPI answers reviews: the token "alice" is hers, and she may get routers/metrics of "public".
type reviewAPI struct {
	tokens, rights atomic.Int64
	failing        atomic.Bool
	last           atomic.Pointer[authorizationv1.SubjectAccessReviewSpec]
}

func (a *reviewAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if a.failing.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		a.tokens.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		if name, pod := strings.CutPrefix(review.Spec.Token, "pod-"); pod {
			review.Status.Authenticated, review.Status.User = true, authenticationv1.UserInfo{Username: "pod" + name}
		} else if review.Status.Authenticated = strings.HasPrefix(review.Spec.Token, "alice"); review.Status.Authenticated {
			review.Status.User = authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"admins"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"x"}}}
		}
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	a.rights.Add(1)
	var review authorizationv1.SubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	a.last.Store(&review.Spec)
	attributes := review.Spec.ResourceAttributes
	review.Status.Allowed = review.Spec.User == "alice" && attributes.Verb == "get" && attributes.Subresource == "metrics" && attributes.Name == "public"
	review.Status.Reason = "no rule"
	_ = json.NewEncoder(w).Encode(review)
}

func TestVisitors(t *testing.T) {
	api := &reviewAPI{}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	clients, err := newClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitors(clients.authentication, clients.authorization, "public", nil)
	v.budget.unknown = rate.NewLimiter(visitRate, 100) // what they cost is another test's
	now := time.Unix(1000, 0)
	v.now = func() time.Time { return now }
	f := func(name, token, method, path string, want int, text string, tokens, rights int64) {
		t.Helper()
		status, got := v.Review(context.Background(), name, token, method, path)
		if status != want || got != text || api.tokens.Load() != tokens || api.rights.Load() != rights {
			t.Errorf("%s: %d %q after %d and %d reviews, want %d %q after %d and %d", name, status, got, api.tokens.Load(), api.rights.Load(), want, text, tokens, rights)
		}
	}
	const who = "Unable to authenticate due to an error"
	f("let in", "alice", "GET", "/metrics", 200, "", 1, 1)
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"admins"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"x"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: "route.openshift.io", Resource: "routers", Subresource: "metrics", Name: "public"},
	}
	if diff := cmp.Diff(want, *api.last.Load()); diff != "" {
		t.Errorf("review (-want +got):\n%s", diff)
	}
	f("remembered", "alice", "HEAD", "/metrics", 200, "", 1, 1)
	f("another path", "alice", "GET", "/routes", 403, "Forbidden: no rule", 1, 2)
	f("another method", "alice", "DELETE", "/metrics", 403, "Forbidden: no rule", 1, 3)
	f("nobody's token", "eve", "GET", "/metrics", 401, who, 2, 3)
	f("nobody", "", "GET", "/metrics", 403, "Forbidden: no rule", 2, 4)
	now = now.Add(6 * time.Second)
	f("asked again what was denied", "", "GET", "/metrics", 403, "Forbidden: no rule", 2, 5)
	f("still let in", "alice", "GET", "/metrics", 200, "", 2, 5)
	now = now.Add(5 * time.Second)
	f("asked again who it is", "alice", "GET", "/metrics", 200, "", 3, 5)
	now = now.Add(2 * time.Minute)
	f("asked again all", "alice", "GET", "/metrics", 200, "", 4, 6)
	now = now.Add(time.Hour)
	api.failing.Store(true)
	f("nobody to ask", "alice", "GET", "/metrics", 500, who, 4, 6)
	f("nobody to ask about rights", "", "GET", "/metrics", 500, "Unable to authorize due to an error", 4, 6)
}

// TestVisitorsAreForgotten: tokens that are made up do not fill the memory, and do not push out those that count for longer.
func TestVisitorsAreForgotten(t *testing.T) {
	var a answers[string, int]
	now := time.Unix(1000, 0)
	a.remember("long", 1, now.Add(time.Hour), now)
	for i := range 3 * maxVisitors {
		a.remember(fmt.Sprint(i), i, now.Add(time.Minute), now)
	}
	if _, ok := a.answerFor("long", now); !ok || len(a.known) != maxVisitors {
		t.Errorf("%v, %d are kept", ok, len(a.known))
	}
	now = now.Add(2 * time.Minute)
	a.remember("next", 1, now.Add(time.Minute), now)
	if len(a.known) != 2 {
		t.Errorf("%d are kept after their time", len(a.known))
	}
	b := newBudget(nil)
	for i := range 3 * maxVisitors {
		b.allow(false, fmt.Sprint(i), now)
	}
	if len(b.sources) > maxVisitors {
		t.Errorf("%d sources are kept", len(b.sources))
	}
}

// TestFloodOfTokens: tokens that are made up, and such that may do nothing here, cost the API server little and keep nobody out who was let in; nor do
// those of one source keep out one from another.
func TestFloodOfTokens(t *testing.T) {
	for name, prefix := range map[string]string{"made up": "x", "of others": "pod-"} {
		t.Run(name, func(t *testing.T) {
			api := &reviewAPI{}
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			clients, err := newClients(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			var counts bound.Counts
			v := newVisitors(clients.authentication, clients.authorization, "public", &counts)
			now := time.Unix(1000, 0)
			v.now = func() time.Time { return now }
			visit := func(source, token string) int {
				status, _ := v.Review(context.Background(), source, token, "GET", "/metrics")
				return status
			}
			if status := visit("prometheus", "alice"); status != 200 {
				t.Fatal(status)
			}
			n, most := 0, int64(0)
			for range 120 { // seconds
				before := api.tokens.Load() + api.rights.Load()
				for range 10 {
					for range 20 {
						n++
						if status := visit("attacker", fmt.Sprint(prefix, n)); status == 200 {
							t.Fatal("let in")
						}
					}
					if status := visit("prometheus", "alice"); status != 200 {
						t.Fatalf("who was let in gets %d after %d other tokens", status, n)
					}
					now = now.Add(100 * time.Millisecond)
				}
				most = max(most, api.tokens.Load()+api.rights.Load()-before)
			}
			if most > 10 {
				t.Errorf("%d reviews in a second", most)
			}
			if counts.Of(bound.Reviews) == 0 {
				t.Error("nobody counts")
			}
			if status := visit("grafana", "alice2"); status != 200 {
				t.Errorf("one from another source gets %d", status)
			}
		})
	}
}

// TestWhatIsAskedFor: paths and methods as the API server is asked about them.
func TestWhatIsAskedFor(t *testing.T) {
	for request, want := range map[[2]string]string{
		{"GET", "/metrics"}: "get metrics", {"HEAD", "/metrics"}: "get metrics", {"GET", "/metrics/x"}: "get ", {"GET", "/routes"}: "get ", {"POST", "/routes"}: "create ",
		{"GET", "/debug/pprof/heap"}: "get debug", {"PUT", "/debug/log-level"}: "update debug", {"GET", "/debug"}: "get ", {"GET", "/debugger"}: "get ",
		{"PATCH", "/"}: "patch ", {"DELETE", "/"}: "delete ", {"CONNECT", "/"}: " ",
	} {
		if got := verbOf(request[0]) + " " + partOf(request[1]); got != want {
			t.Errorf("%v: %q, want %q", request, got, want)
		}
	}
}
