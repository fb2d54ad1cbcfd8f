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
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
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
		if review.Status.Authenticated = review.Spec.Token == "alice"; review.Status.Authenticated {
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
	v := newVisitors(clients.authentication, clients.authorization, "public")
	now := time.Unix(1000, 0)
	v.now = func() time.Time { return now }
	f := func(name, token, method, path string, want int, text string, tokens, rights int64) {
		t.Helper()
		status, got := v.Review(context.Background(), token, method, path)
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

// TestVisitorsAreForgotten: tokens that are made up do not fill the memory.
func TestVisitorsAreForgotten(t *testing.T) {
	server := httptest.NewServer(&reviewAPI{})
	t.Cleanup(server.Close)
	clients, err := newClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitors(clients.authentication, clients.authorization, "public")
	for i := range maxVisitors {
		v.tokens.put([32]byte{byte(i), byte(i >> 8)}, authenticationv1.UserInfo{}, v.now())
		v.rights.put(fmt.Sprint(i), right{}, v.now())
	}
	if status, _ := v.Review(context.Background(), "alice", "GET", "/metrics"); status != 200 || len(v.tokens.known) != 1 || len(v.rights.known) != 1 {
		t.Errorf("status %d, %d tokens and %d rights are kept", status, len(v.tokens.known), len(v.rights.known))
	}
}
