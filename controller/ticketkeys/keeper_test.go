package ticketkeys

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"turnout/internal/problem"
)

// secretAPI is an API server with one Secret, without a network.
type secretAPI struct {
	mu        sync.Mutex
	secret    *corev1.Secret
	version   int
	changed   chan struct{} // closed at the next write
	writes    int           // that were accepted
	conflicts int
	away      bool
	forbidden bool // to create
}

func newAPI() *secretAPI { return &secretAPI{changed: make(chan struct{})} }

func answer(status int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}
}

func failure(status int, reason string) *http.Response {
	return answer(status, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": status})
}

// RoundTrip implements http.RoundTripper.
func (a *secretAPI) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Query().Get("watch") != "" {
		return a.watch(q)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.away:
		return nil, errors.New("the network is cut")
	case q.Method == http.MethodGet && a.secret == nil:
		return failure(http.StatusNotFound, "NotFound"), nil
	case q.Method == http.MethodGet:
		return answer(http.StatusOK, a.secret), nil
	}
	s := new(corev1.Secret)
	if err := json.NewDecoder(q.Body).Decode(s); err != nil {
		return nil, err
	}
	switch {
	case q.Method == http.MethodPost && a.forbidden:
		return failure(http.StatusForbidden, "Forbidden"), nil
	case q.Method == http.MethodPost && a.secret != nil:
		a.conflicts++
		return failure(http.StatusConflict, "AlreadyExists"), nil
	case q.Method == http.MethodPut && s.ResourceVersion != a.secret.ResourceVersion:
		a.conflicts++
		return failure(http.StatusConflict, "Conflict"), nil
	}
	a.put(s)
	return answer(http.StatusOK, s), nil
}

// put makes s what there is. a.mu is held.
func (a *secretAPI) put(s *corev1.Secret) {
	a.version++
	a.writes++
	s.ResourceVersion = strconv.Itoa(a.version)
	s.APIVersion, s.Kind = "v1", "Secret"
	a.secret = s
	close(a.changed)
	a.changed = make(chan struct{})
}

// watch answers with one event when the Secret changes.
func (a *secretAPI) watch(q *http.Request) (*http.Response, error) {
	a.mu.Lock()
	changed, away := a.changed, a.away
	now := a.secret != nil && a.secret.ResourceVersion != q.URL.Query().Get("resourceVersion")
	a.mu.Unlock()
	if away {
		return nil, errors.New("the network is cut")
	}
	r, w := io.Pipe()
	go func() {
		if !now {
			select {
			case <-changed:
			case <-q.Context().Done():
				_ = w.CloseWithError(q.Context().Err())
				return
			}
		}
		a.mu.Lock()
		text, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": a.secret})
		a.mu.Unlock()
		if err == nil {
			_, err = w.Write(text)
		}
		<-q.Context().Done()
		_ = w.CloseWithError(errors.Join(err, q.Context().Err()))
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: r}, nil
}

// replica is a router that follows the Secret.
type replica struct {
	mu       sync.Mutex
	contents map[string][]byte
	times    int
	refuse   error
	problems *problem.List
	keeper   *Keeper
}

func (r *replica) share(contents map[string][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	r.contents, r.times = maps.Clone(contents), r.times+1
	return nil
}

func (r *replica) has() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.contents
}

// wrong are the problems that there are.
func (r *replica) wrong() []problem.Problem {
	all, _ := r.problems.All("", 10)
	return slices.Collect(all)
}

func newReplica(t *testing.T, api http.RoundTripper) *replica {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://api.test", Transport: api, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{problems: problem.NewList()}
	r.keeper, err = New(Config{Client: client, Namespace: "turnout", Name: "tickets", Every: time.Hour, Problems: r.problems})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start has replicas follow the API in virtual time until the test ends.
func start(t *testing.T, replicas ...*replica) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, r := range replicas {
		running.Go(func() {
			if err := r.keeper.Run(ctx, r.share); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

// TestReplicasAgree: the first one creates the Secret and each rotation is one write. What is current was next for a whole rotation before, what was current counts on.
func TestReplicasAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		replicas := []*replica{newReplica(t, api), newReplica(t, api), newReplica(t, api)}
		start(t, replicas...)
		<-time.After(2 * time.Minute)
		before := replicas[0].has()
		for i := range 5 {
			<-time.After(time.Hour + time.Minute) // with the slack
			now := replicas[0].has()
			for j, r := range replicas {
				if !maps.EqualFunc(r.has(), now, slices.Equal) {
					t.Errorf("rotation %d: replica %d has other secrets", i, j)
				}
			}
			if string(now[Current]) != string(before[Next]) || string(now[Previous]) != string(before[Current]) || string(now[Next]) == string(before[Next]) {
				t.Errorf("rotation %d: secrets were not moved on", i)
			}
			before = now
		}
		if api.writes != 6 {
			t.Errorf("%d writes for a creation and five rotations", api.writes)
		}
		for i, r := range replicas {
			if r.times != 6 {
				t.Errorf("replica %d was given secrets %d times", i, r.times)
			}
		}
	})
}

// TestOthersSecret: contents that no router has made are used and never replaced, whoever changes them.
func TestOthersSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		api.put(&corev1.Secret{Data: map[string][]byte{Current: []byte("one")}})
		r := newReplica(t, api)
		start(t, r)
		<-time.After(10 * time.Hour)
		if api.writes != 1 || string(r.has()[Current]) != "one" {
			t.Errorf("%d writes, %q", api.writes, r.has())
		}
		api.mu.Lock()
		api.put(&corev1.Secret{Data: map[string][]byte{Current: []byte("two")}})
		api.mu.Unlock()
		<-time.After(time.Second)
		if string(r.has()[Current]) != "two" {
			t.Errorf("a second after a change: %q", r.has())
		}
	})
}

// TestAway: without an API server a router keeps what it has, says so once, and rotates when the server is back.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		r := newReplica(t, api)
		start(t, r)
		<-time.After(time.Minute)
		before := r.has()
		api.mu.Lock()
		api.away = true
		close(api.changed)
		api.changed = make(chan struct{})
		api.mu.Unlock()
		<-time.After(3 * time.Hour)
		if len(r.wrong()) != 1 || !strings.Contains(r.wrong()[0].Text, "turnout/tickets") {
			t.Errorf("problems: %v", r.wrong())
		}
		api.mu.Lock()
		api.away = false
		api.mu.Unlock()
		<-time.After(2 * time.Minute)
		if now := r.has(); string(now[Current]) != string(before[Next]) || len(r.wrong()) != 0 {
			t.Errorf("not rotated once, or still a problem: %v", r.wrong())
		}
	})
}

// TestMayNotCreate: the problem says what to do, and the Secret that somebody creates empty is filled.
func TestMayNotCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		api.forbidden = true
		r := newReplica(t, api)
		start(t, r)
		<-time.After(10 * time.Second)
		if all := r.wrong(); len(all) != 1 || !strings.Contains(all[0].Text, "create it empty") {
			t.Errorf("problems: %v", all)
		}
		api.mu.Lock()
		api.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "turnout", Name: "tickets"}})
		api.mu.Unlock()
		<-time.After(2 * time.Minute)
		if len(r.has()) != 2 || len(r.wrong()) != 0 {
			t.Errorf("%d secrets, problems %v", len(r.has()), r.wrong())
		}
	})
}

// TestRefused: contents that cannot be used are a problem until they are others.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		r := newReplica(t, api)
		r.refuse = errors.New("current holds 3 bytes, less than 32")
		start(t, r)
		<-time.After(10 * time.Second)
		if all := r.wrong(); len(all) != 1 || !strings.Contains(all[0].Text, "holds 3 bytes") {
			t.Errorf("problems: %v", all)
		}
		r.mu.Lock()
		r.refuse = nil
		r.mu.Unlock()
		<-time.After(2 * time.Minute)
		if r.has() == nil || len(r.wrong()) != 0 {
			t.Errorf("not shared, or still a problem: %v", r.wrong())
		}
	})
}

// TestFirst shares at once what there is.
func TestFirst(t *testing.T) {
	api := newAPI()
	r := newReplica(t, api)
	r.keeper.First(t.Context(), r.share)
	if len(r.has()) != 2 {
		t.Errorf("%d secrets", len(r.has()))
	}
}

func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	whole := map[string][]byte{Current: make([]byte, secretBytes), Next: make([]byte, secretBytes)}
	at := func(text string) map[string]string { return map[string]string{RotatedAnnotation: text} }
	for name, c := range map[string]struct {
		annotations map[string]string
		data        map[string][]byte
		in          time.Duration
		own         bool
	}{
		"empty":                   {nil, nil, 0, true},
		"somebody else's":         {nil, whole, 0, false},
		"fresh":                   {at("2026-01-02T03:04:05Z"), whole, time.Hour, true},
		"half":                    {at("2026-01-02T02:34:05Z"), whole, time.Minute * 30, true},
		"over":                    {at("2026-01-02T01:04:05Z"), whole, -time.Hour, true},
		"a clock ahead":           {at("2026-01-02T03:34:05Z"), whole, 90 * time.Minute, true},
		"a clock far ahead":       {at("2026-01-03T03:04:05Z"), whole, 0, true},
		"no time":                 {at("yesterday"), whole, 0, true},
		"without next":            {at("2026-01-02T03:04:05Z"), map[string][]byte{Current: whole[Current]}, 0, true},
		"current that was edited": {at("2026-01-02T03:04:05Z"), map[string][]byte{Current: []byte("x"), Next: whole[Next]}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, own := due(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}, Data: c.data}, time.Hour, now)
			if got.Sub(now) != c.in || own != c.own {
				t.Errorf("in %v, %v; want in %v, %v", got.Sub(now), own, c.in, c.own)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://api.test"})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"no client": {Namespace: "a", Name: "b", Every: time.Hour},
		"no name":   {Client: client, Namespace: "a", Every: time.Hour},
		"too often": {Client: client, Namespace: "a", Name: "b", Every: time.Second},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
