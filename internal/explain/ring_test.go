package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/proxy"
)

// failure is a record of a request of a route that failed.
func failure(namespace, route string, n int) *proxy.Record {
	return &proxy.Record{
		Namespace: namespace, Route: route, Reason: proxy.ReasonConnect, Status: 503, Client: netip.MustParseAddrPort("192.0.2.1:5"), Method: []byte("GET"),
		Host: []byte("a.test"), Target: []byte(fmt.Sprintf("/%d?token=secret&x", n)), UniqueID: []byte(fmt.Sprint(route, "-", n)),
		Endpoint: netip.MustParseAddrPort("10.0.0.1:80"), Total: time.Millisecond,
	}
}

// logged logs a record at a moment that is far enough from the one before.
func (r *Ring) logged(rec *proxy.Record) {
	r.last.Store(0)
	r.Log(rec)
}

// TestRing: of each route the last few are remembered, of the routes those that had one last, and none pushes out those of others.
func TestRing(t *testing.T) {
	r := NewRing(func() uint64 { return 7 }, nil)
	r.logged(failure("quiet", "one", 0))
	for n := range 10 * ringStories {
		r.logged(failure("noisy", "all", n))
	}
	if all := r.All(); len(all) != ringStories+1 {
		t.Fatalf("%d stories", len(all))
	}
	failed := r.Failed("noisy", "all")
	if len(failed) != ringStories || failed[0].UniqueID != fmt.Sprint("all-", 10*ringStories-1) || failed[0].Generation != 7 || failed[0].Why != WhyFailed {
		t.Errorf("%+v", failed)
	}
	s, ok := r.Find("one-0")
	if !ok || s.Target != "/0?token=REDACTED&x" || s.Reason != "connect-failed" || s.Endpoint != "10.0.0.1:80" || s.Meaning == "" {
		t.Errorf("%+v", s)
	}
	if again, ok := r.Find(s.ID); !ok || again != s {
		t.Errorf("by its number: %+v", again)
	}
	if _, ok := r.Find(""); ok {
		t.Error("a request without an id is found")
	}
	for n := range ringRoutes {
		r.logged(failure("many", fmt.Sprint(n), n))
	}
	if _, ok := r.Find("one-0"); ok || len(r.routes) != ringRoutes {
		t.Errorf("%d routes are remembered, and the oldest one %t", len(r.routes), ok)
	}
	if o := r.oldest; o == nil || o.key[1] != "0" || r.newest.key[1] != fmt.Sprint(ringRoutes-1) {
		t.Error("the routes are not in their order")
	}
	long := failure("many", "1", 1)
	long.Target = []byte("/" + strings.Repeat("x", 10*ringText))
	r.logged(long)
	if got := r.Failed("many", "1")[0]; len(got.Target) != ringText {
		t.Errorf("%d bytes of a target are kept", len(got.Target))
	}
	if !slices.IsSortedFunc(r.All(), func(a, b Story) int { return b.Start.Compare(a.Start) }) {
		t.Error("not the last one first")
	}
}

// TestRingHasItsPace: when more fails than there is time to note, the rest is counted.
func TestRingHasItsPace(t *testing.T) {
	var bounds bound.Counts
	r := NewRing(func() uint64 { return 1 }, &bounds)
	r.last.Store(time.Now().Add(time.Hour).UnixNano()) // the last one was noted just now
	r.Log(failure("ns", "a", 1))
	if len(r.All()) != 0 || bounds.Of(bound.RecentRequests) != 1 {
		t.Errorf("%d stories, %d not noted", len(r.All()), bounds.Of(bound.RecentRequests))
	}
}

func TestStoriesSayWhy(t *testing.T) {
	slow := &proxy.Record{Reason: proxy.ReasonOK, Status: 200, Total: ringSlow, Method: []byte("GET")}
	sample := &proxy.Record{Reason: proxy.ReasonOK, Status: 200, Method: []byte("GET")}
	bad := &proxy.Record{Reason: proxy.ReasonOK, Status: 500, Method: []byte("GET")}
	for rec, want := range map[*proxy.Record]string{slow: WhySlow, sample: WhySampled, bad: WhyFailed} {
		s := storyOf(rec, time.Now())
		var b strings.Builder
		if err := s.Text(&b); err != nil || s.Why != want || !strings.Contains(b.String(), "because it is "+want) {
			t.Errorf("%s: %s", want, b.String())
		}
	}
}
