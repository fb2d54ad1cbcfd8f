package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnout/controller/source/cluster"
)

// reads is a Reader of an API server that has these answers, by the last part of the path.
func reads(t *testing.T, answers map[string]string) *Reader {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	r, err := New(&cluster.Config{Reach: cluster.Reach{Flags: cluster.Flags{Server: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const someRouters = `{"apiVersion":"turnout.router/v1alpha1","kind":"RouterList","items":[
	{"metadata":{"name":"z"},"spec":{"taints":[{"key":"upgrade","effect":"Drain"}]},"status":{"phase":"Draining"}},
	{"metadata":{"name":"a"},"status":{"phase":"Ready"}},
	{"metadata":{"name":"m"},"status":{"phase":"Ready","addresses":["10.0.0.1","10.0.0.2","10.0.0.3","10.0.0.4","10.0.0.5","10.0.0.6","10.0.0.7","10.0.0.8","10.0.0.9"]}},
	{"metadata":{"name":"n"},"status":{"phase":"Ready","conditions":[{"type":"Valid","status":"False","message":"correct it"}]}}]}`

// TestBoard: one that is not told by the leader says what the API server says, those first that somebody should look at.
func TestBoard(t *testing.T) {
	r := reads(t, map[string]string{"routers": someRouters, "default": `{"apiVersion":"turnout.router/v1alpha1","kind":"RouteScheduler","metadata":{"name":"default"},
		"spec":{"strategy":"Spread"},"status":{"leader":"pod-1","bound":3,"waiting":2,"moving":1,"conditions":[{"type":"Held","status":"True","message":"many are lost"},
		{"type":"Valid","status":"False","message":"no such strategy"}]}}`})
	b, err := r.Board(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range b.Routers {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "n z a m" || b.Routers[1].Taints[0] != "upgrade:Drain" || len(b.Routers[3].Addresses) != 8 || b.Routers[3].MoreAddresses != 1 {
		t.Errorf("%s: %+v", got, b.Routers)
	}
	if b.Here != "a" || b.Leader != "pod-1" || !b.Counted || b.Bound != 3 || b.Waiting != 2 || b.Moving != 1 || b.Held != "many are lost" || b.Invalid != "no such strategy" ||
		b.Phases["Ready"] != 3 || b.Waits != nil || b.Moves != nil {
		t.Errorf("%+v", b)
	}
	b, err = reads(t, map[string]string{"routers": someRouters}).Board(t.Context(), "a")
	if err != nil || b.Counted || b.Leader != "" || len(b.Routers) != 4 {
		t.Errorf("without a RouteScheduler: %+v, %v", b, err)
	}
	if _, err := reads(t, nil).Board(t.Context(), "a"); err == nil {
		t.Error("an API server that knows no Routers is no error")
	}
}

// TestBoardIsBounded: of a thousand Routers those that somebody should look at are there.
func TestBoardIsBounded(t *testing.T) {
	all := make([]Router, 1000)
	for i := range all {
		all[i] = Router{Name: fmt.Sprintf("r%04d", i), Phase: "Ready"}
	}
	all[999].Phase = "Lost"
	b := new(Board)
	b.SetRouters(all)
	if len(b.Routers) != MostRouters || b.More != 800 || b.Routers[0].Name != "r0999" || b.Routers[1].Name != "r0000" || b.Phases["Ready"] != 999 {
		t.Errorf("%d Routers, %d more, %+v", len(b.Routers), b.More, b.Routers[:2])
	}
}

// TestLately: however many look, it is read once in a while; who goes away does not take it from the others.
func TestLately(t *testing.T) {
	now, reads := time.Unix(1000, 0), 0
	l := &Lately{Clock: func() time.Time { return now }, Age: time.Minute, Read: func(ctx context.Context) (*Board, error) {
		if reads++; reads == 2 {
			return nil, errors.New("no answer")
		}
		return new(Board), ctx.Err()
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		after time.Duration
		reads int
		fails bool
	}{{0, 1, false}, {time.Minute, 1, false}, {time.Second, 2, true}, {time.Second, 2, true}, {time.Minute, 3, false}} {
		now = now.Add(c.after)
		if _, err := l.Board(gone); reads != c.reads || (err != nil) != c.fails {
			t.Errorf("read %d times, want %d: %v", reads, c.reads, err)
		}
	}
}

// TestSearchIsChecked: what cannot be used names itself, its value and what is allowed.
func TestSearchIsChecked(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"limit", "201", `limit "201" is not a number from 1 to 200`},
		{"offset", "-1", `offset "-1" is not a number from 0 to 1073741824`},
		{"q", strings.Repeat("x", 257), "q or router is longer than 256 bytes"},
		{"router", strings.Repeat("x", 257), "q or router is longer than 256 bytes"},
	} {
		get := func(name string) string { return map[string]string{c.name: c.value}[name] }
		if _, err := ParseSearch(get); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s, err := ParseSearch(func(name string) string {
		return map[string]string{"q": "a b", "router": "one", "offset": "50", "limit": "10"}[name]
	})
	if want := (Search{"a b", "one", 50, 10}); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
}
