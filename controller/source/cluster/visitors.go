package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"turnout/internal/bound"
)

// Visitors says who may read the admin port of a router, as the API server has it: a token tells who somebody is, and
// every account that may use "routers" of route.openshift.io by the router's name, "metrics" of it for /metrics and "debug" for what is below /debug, is let in. It is safe
// for concurrent use.
type Visitors struct {
	authentication, authorization rest.Interface
	router                        string
	now                           func() time.Time

	tokens answers[[sha256.Size]byte, authenticationv1.UserInfo] // whose a token is; an empty name is nobody's
	known  answers[[sha256.Size]byte, struct{}]                  // tokens whose owners were let in
	rights answers[string, right]
	budget budget
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

// answerFor returns the answer that is known; false = none, or not any more.
func (a *answers[K, V]) answerFor(key K, now time.Time) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[key]
	return known.value, ok && now.Before(known.expiry)
}

// remember keeps an answer. If there are too many, those that do not count any more go, or the one that will soonest.
func (a *answers[K, V]) remember(key K, value V, expiry, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[K]answer[V]{}
	}
	if _, there := a.known[key]; !there && len(a.known) >= maxVisitors {
		a.makeRoom(now)
	}
	a.known[key] = answer[V]{value, expiry}
}

func (a *answers[K, V]) makeRoom(now time.Time) {
	var first K
	var soonest time.Time
	for key, known := range a.known {
		if !now.Before(known.expiry) {
			delete(a.known, key)
		} else if soonest.IsZero() || known.expiry.Before(soonest) {
			first, soonest = key, known.expiry
		}
	}
	if len(a.known) >= maxVisitors {
		delete(a.known, first)
	}
}

// How long answers of the API server count, and how many of each kind are kept.
const (
	tokenCounts   = 10 * time.Second
	knownCounts   = time.Hour
	allowedCounts = 2 * time.Minute
	deniedCounts  = 5 * time.Second
	maxVisitors   = 1024
)

// Visitors returns who may read the admin port of a router of that name.
func (f *Feeder) Visitors(router string) *Visitors {
	return newVisitors(f.clients.authentication, f.clients.authorization, router, f.bounds)
}

func newVisitors(authentication, authorization rest.Interface, router string, bounds *bound.Counts) *Visitors {
	return &Visitors{authentication: authentication, authorization: authorization, router: router, now: time.Now, budget: newBudget(bounds)}
}

// errTooMany is that the API server is not asked now.
var errTooMany = errors.New("too many reviews")

// Review judges a request of a source, by its token, "" = none, method and path: 200 lets it in, and 401, 403, 429 and 500 refuse it with a
// text that says why. 429 is that too many others, or too many from this source, have to be reviewed.
func (v *Visitors) Review(ctx context.Context, source, token, method, path string) (status int, text string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := sha256.Sum256([]byte(token))
	_, known := v.known.answerFor(key, v.now())
	asks := func() bool { return v.budget.allow(known, source, v.now()) }
	user, err := v.user(ctx, key, token, asks)
	switch {
	case errors.Is(err, errTooMany):
		return 429, "Too many visitors have to be authenticated"
	case err != nil:
		return 500, "Unable to authenticate due to an error"
	case user.Username == "":
		return 401, "Unable to authenticate due to an error"
	}
	r, err := v.right(ctx, user, method, path, asks)
	if errors.Is(err, errTooMany) {
		return 429, "Too many visitors have to be authorized"
	}
	if err != nil {
		return 500, "Unable to authorize due to an error"
	}
	if !r.allowed {
		return 403, "Forbidden: " + r.reason
	}
	v.known.remember(key, struct{}{}, v.now().Add(knownCounts), v.now())
	return 200, ""
}

// user returns whose a token is, by its hash or because the API server may be asked; without a name it is nobody's.
func (v *Visitors) user(ctx context.Context, key [sha256.Size]byte, token string, asks func() bool) (authenticationv1.UserInfo, error) {
	if token == "" {
		return authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, nil
	}
	if user, ok := v.tokens.answerFor(key, v.now()); ok {
		return user, nil
	}
	if !asks() {
		return authenticationv1.UserInfo{}, errTooMany
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
	v.tokens.remember(key, user, v.now().Add(tokenCounts), v.now())
	return user, nil
}

// right returns whether a user may do what a request asks for.
func (v *Visitors) right(ctx context.Context, user authenticationv1.UserInfo, method, path string, asks func() bool) (right, error) {
	verb, part := verbOf(method), partOf(path)
	key := strings.Join(append([]string{user.Username, user.UID, verb, part}, user.Groups...), "\x00")
	if known, ok := v.rights.answerFor(key, v.now()); ok {
		return known, nil
	}
	if !asks() {
		return right{}, errTooMany
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
	v.rights.remember(key, known, v.now().Add(counts), v.now())
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
	switch {
	case path == "/metrics":
		return "metrics"
	case strings.HasPrefix(path, "/debug/"):
		return "debug"
	}
	return ""
}
