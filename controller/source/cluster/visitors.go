package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// Visitors says who may read the admin port of a router, as the API server has it: a token tells who somebody is, and
// whoever may use "routers" of route.openshift.io by the router's name, "metrics" of it for /metrics, is let in. It is safe
// for concurrent use.
type Visitors struct {
	authentication, authorization rest.Interface
	router                        string
	now                           func() time.Time

	tokens answers[[sha256.Size]byte, authenticationv1.UserInfo] // whose a token is; an empty name is nobody's
	rights answers[string, right]
}

// right is whether somebody may do something.
type right struct {
	allowed bool
	reason  string
}

// answers are what the API server said, each for as long as it counts. The zero value has none.
type answers[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]answer[V]
}

// answer is one of them.
type answer[V any] struct {
	value  V
	expiry time.Time
}

// get returns what is known; false = nothing, or not any more.
func (a *answers[K, V]) get(key K, now time.Time) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[key]
	return known.value, ok && now.Before(known.expiry)
}

func (a *answers[K, V]) put(key K, value V, expiry time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxVisitors {
		a.known = map[K]answer[V]{}
	}
	a.known[key] = answer[V]{value, expiry}
}

// How long answers of the API server count, and how many of each kind are kept: more than these make it start anew.
const (
	tokenCounts   = 10 * time.Second
	allowedCounts = 2 * time.Minute
	deniedCounts  = 5 * time.Second
	maxVisitors   = 1024
)

// Visitors returns who may read the admin port of a router of that name.
func (f *Feeder) Visitors(router string) *Visitors {
	return newVisitors(f.authentication, f.authorization, router)
}

func newVisitors(authentication, authorization rest.Interface, router string) *Visitors {
	return &Visitors{authentication: authentication, authorization: authorization, router: router, now: time.Now}
}

// Review judges a request by its token, "" = none, method and path: 200 lets it in, and 401, 403 and 500 refuse it with a
// text that says why.
func (v *Visitors) Review(ctx context.Context, token, method, path string) (status int, text string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	user, err := v.user(ctx, token)
	if err != nil {
		return 500, "Unable to authenticate due to an error"
	}
	if user.Username == "" {
		return 401, "Unable to authenticate due to an error"
	}
	r, err := v.right(ctx, user, method, path)
	if err != nil {
		return 500, "Unable to authorize due to an error"
	}
	if !r.allowed {
		return 403, "Forbidden: " + r.reason
	}
	return 200, ""
}

// user returns whose a token is; without a name it is nobody's.
func (v *Visitors) user(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	if token == "" {
		return authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, nil
	}
	key := sha256.Sum256([]byte(token))
	if user, ok := v.tokens.get(key, v.now()); ok {
		return user, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer := new(authenticationv1.TokenReview)
	if err := v.authentication.Post().Resource("tokenreviews").MaxRetries(0).Body(review).Do(ctx).Into(answer); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("cannot review a token: %w", err)
	}
	var user authenticationv1.UserInfo
	if answer.Status.Authenticated { // if not, an error says that the token is wrong or has expired
		user = answer.Status.User
	}
	v.tokens.put(key, user, v.now().Add(tokenCounts))
	return user, nil
}

// right returns whether a user may do what a request asks for.
func (v *Visitors) right(ctx context.Context, user authenticationv1.UserInfo, method, path string) (right, error) {
	verb, part := verbOf(method), partOf(path)
	key := strings.Join(append([]string{user.Username, user.UID, verb, part}, user.Groups...), "\x00")
	if known, ok := v.rights.get(key, v.now()); ok {
		return known, nil
	}
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: "route.openshift.io", Resource: "routers", Subresource: part, Name: v.router,
		},
	}
	for name, values := range user.Extra {
		spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	answer := new(authorizationv1.SubjectAccessReview)
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	if err := v.authorization.Post().Resource("subjectaccessreviews").MaxRetries(0).Body(review).Do(ctx).Into(answer); err != nil {
		return right{}, fmt.Errorf("cannot review what %s may do: %w", user.Username, err)
	}
	known, counts := right{allowed: answer.Status.Allowed, reason: answer.Status.Reason}, deniedCounts
	if known.allowed {
		counts = allowedCounts
	}
	v.rights.put(key, known, v.now().Add(counts))
	return known, nil
}

// verbOf is the verb of the API for a method.
func verbOf(method string) string {
	switch method {
	case "GET", "HEAD":
		return "get"
	case "POST":
		return "create"
	case "PUT":
		return "update"
	case "PATCH":
		return "patch"
	case "DELETE":
		return "delete"
	}
	return ""
}

// partOf is the subresource that stands for a path.
func partOf(path string) string {
	if path == "/metrics" {
		return "metrics"
	}
	return ""
}
