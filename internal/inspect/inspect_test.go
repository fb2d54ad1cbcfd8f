package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/adminclient"
	"turnout/internal/option"
	"turnout/internal/problem"
	"turnout/internal/view"
)

// router answers as one with so many routes does; each look has two more errors of the first route.
func router(t *testing.T, routes int) *adminclient.Client {
	t.Helper()
	errorsOfFirst := uint64(0)
	started := time.Unix(1000, 0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		var answer any
		switch r.URL.Path {
		case "/view/overview":
			errorsOfFirst += 2
			answer = view.Overview{At: started.Add(time.Duration(errorsOfFirst) * time.Second), Version: "v1", Routes: routes, Counts: map[string]int{"note": 3},
				Traffic: view.Traffic{Requests: 12.5}, Latency: view.Latency{P50: 0.001, P99: 1.5}, Servers: view.Servers{All: 3, Usable: 1, Down: 2}}
		case "/view/routes":
			offset, _ := strconv.Atoi(q.Get("offset"))
			limit, _ := strconv.Atoi(q.Get("limit"))
			p := view.Page{Total: routes, Offset: offset, Lines: []view.Line{}}
			for i := offset; i < min(routes, offset+limit); i++ {
				l := view.Line{Namespace: "shop", Name: "r" + strconv.Itoa(i), Host: "h" + strconv.Itoa(i) + ".a-long-domain.test" + q.Get("q"), Admitted: i != 1, Termination: "edge", Rate: 7, P99: 0.25}
				if i == 0 {
					l.Errors = errorsOfFirst
				}
				if i == 1 {
					l.Reason = "HostAlreadyClaimed"
				}
				p.Lines = append(p.Lines, l)
			}
			answer = p
		case "/problems":
			answer = []map[string]any{
				{"kind": "rejected", "route": "shop/r1", "reason": "HostAlreadyClaimed", "text": "taken\x1b[2J", "since": started},
				{"kind": "down", "route": "park/r2, yard/r3", "server": "192.0.2.1:80", "text": "no answer", "since": started},
				{"kind": "file", "file": "x.pem", "text": "broken", "since": started},
			}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return &adminclient.Client{Base: server.URL}
}

func TestRoutes(t *testing.T) {
	c := router(t, 450)
	var out bytes.Buffer
	if err := Routes(t.Context(), c, view.Search{Text: "/x"}, 0, true, &out); err != nil {
		t.Fatal(err)
	}
	var all []view.Line
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all) != 450 || all[449].Name != "r449" || !strings.HasSuffix(all[0].Host, "/x") {
		t.Errorf("%v, %d routes", err, len(all))
	}
	out.Reset()
	if err := Routes(t.Context(), c, view.Search{}, 3, false, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "ROUTE ") || !strings.Contains(lines[2], "HostAlreadyClaimed") || lines[4] != "3 of 450 routes" {
		t.Errorf("%s", &out)
	}
}

// TestProblems: what tenants wrote cannot move the cursor.
func TestProblems(t *testing.T) {
	c := router(t, 1)
	all := []string{"rejected: shop/r1: HostAlreadyClaimed: taken?[2J (since ", "down: park/r2, yard/r3, 192.0.2.1:80: no answer (since ", "file: x.pem: broken (since "}
	for _, tc := range []struct {
		kinds, namespaces string
		want              []string
	}{
		{"", "", all}, {"file,down", "", all[1:]}, {"", "shop,yard", all[:2]}, {"down", "park", all[1:2]},
		{"", "sho", []string{"none of 3 problems is of that kind and namespace"}}, {"file", "shop", []string{"none of 3 "}},
	} {
		kinds, err := ParseKinds(tc.kinds)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		filter := Filter{Kinds: kinds, Namespaces: option.ParseList(tc.namespaces)}
		if err := Problems(t.Context(), c, filter, false, &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if !slices.EqualFunc(lines, tc.want, strings.HasPrefix) {
			t.Errorf("kinds %q, namespaces %q: %q, want %q", tc.kinds, tc.namespaces, lines, tc.want)
		}
		out.Reset()
		var listed []problem.Problem
		if err := Problems(t.Context(), c, filter, true, &out); err != nil || json.Unmarshal(out.Bytes(), &listed) != nil || strings.HasPrefix(tc.want[0], "none") != (len(listed) == 0) {
			t.Errorf("kinds %q, namespaces %q: %v %q", tc.kinds, tc.namespaces, err, &out)
		}
	}
	if _, err := ParseKinds("rejectd"); err == nil || !strings.Contains(err.Error(), "allowed: rejected, note, ") || !strings.HasSuffix(err.Error(), "did you mean rejected?") {
		t.Error(err)
	}
}

func TestOnce(t *testing.T) {
	var out bytes.Buffer
	if err := Once(t.Context(), router(t, 5), view.Search{}, true, &out); err != nil {
		t.Fatal(err)
	}
	var s Snapshot
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || s.Overview.Version != "v1" || len(s.Routes.Lines) != 5 {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := Once(t.Context(), router(t, 30), view.Search{}, false, &out); err != nil || strings.Count(out.String(), "\n") != 3+1+30 ||
		!strings.Contains(out.String(), "requests 12.5/s") || !strings.Contains(out.String(), "p50 1ms  p99 1.5s  endpoints 1/3 2 down") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %s", err, &out)
	}
	if err := Once(t.Context(), &adminclient.Client{Base: "127.0.0.1:1"}, view.Search{}, false, &out); err == nil {
		t.Error("nobody answers, and it is no error")
	}
}

// screen is a terminal; each write is a frame.
type screen struct{ frames chan string }

func (s screen) Write(p []byte) (int, error) { s.frames <- string(p); return len(p), nil }

// TestTop: frames fit the terminal, also when its size changes, and the terminal is left as it was.
func TestTop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	resized, s := make(chan os.Signal), screen{make(chan string)}
	sizes := make(chan [2]int, 3)
	sizes <- [2]int{100, 10}
	top := &Top{Client: router(t, 50), Search: view.Search{Order: "rate"}, Interval: time.Hour, Out: s, Resized: resized,
		Size: func() (int, int) { size := <-sizes; return size[0], size[1] }}
	ended := make(chan error)
	go func() { ended <- top.Run(ctx) }()
	fits := func(frame string, columns, rows int) {
		t.Helper()
		lines := strings.Split(strings.NewReplacer(goHome, "", clearLine, "", clearBelow, "").Replace(frame), "\r\n")
		if len(lines) != rows || !strings.HasPrefix(lines[4], "shop/r0") {
			t.Errorf("%d lines, want %d: %q", len(lines), rows, frame)
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > columns {
				t.Errorf("%d columns, want at most %d: %q", n, columns, line)
			}
		}
	}
	if first := <-s.frames; first != enterScreen {
		t.Errorf("%q", first)
	}
	fits(<-s.frames, 100, 10)
	sizes <- [2]int{60, 20}
	resized <- syscall.SIGWINCH
	fits(<-s.frames, 60, 20)
	stop()
	if last := <-s.frames; last != leaveScreen {
		t.Errorf("%q", last)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestErrorRate is what two looks say about errors.
func TestErrorRate(t *testing.T) {
	c := router(t, 2)
	first, err := Look(t.Context(), c, view.Search{Limit: 10})
	second, err2 := Look(t.Context(), c, view.Search{Limit: 10})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	rows := lines(&second, &first, 10)
	if rows[1][5] != "1.0" || rows[2][5] != "0.0" || lines(&second, nil, 10)[1][5] != "-" {
		t.Errorf("%v", rows)
	}
}
