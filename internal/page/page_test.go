package page

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/controller"
	"turnout/internal/view"
	"turnout/proxy"
	"turnout/routing"
)

// serve is the page of an empty router, and how often somebody looked at its counters.
func serve(t *testing.T) (base string, looked *atomic.Int64) {
	t.Helper()
	looked = new(atomic.Int64)
	h, err := New(view.Config{
		Version: "v1", Table: routing.NewStore().Load, Now: func() int64 { return 0 }, Clock: time.Now,
		Totals: func() proxy.Totals {
			looked.Add(1)
			return proxy.Totals{Requests: 7}
		},
		Routes: func() []controller.Summary {
			return []controller.Summary{{Namespace: "ns", Name: "a", Host: "<b>.test"}}
		},
		Changes: func() []controller.Change { return []controller.Change{} },
		Route: func(namespace, name string) (*controller.RouteReport, bool) {
			return &controller.RouteReport{Namespace: namespace, Name: name}, namespace == "ns"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, looked
}

func ask(t *testing.T, url string) (status int, header http.Header, text string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// TestAnswers: each path has its kind of content, and what is not there or cannot be used is said to be so.
func TestAnswers(t *testing.T) {
	base, _ := serve(t)
	for _, tt := range []struct {
		path   string
		status int
		kind   string
		has    string
	}{
		{"/", 200, "text/html; charset=utf-8", `<script src="/view/page.js" type="module">`},
		{"/view/page.css", 200, "text/css; charset=utf-8", "prefers-color-scheme"},
		{"/view/page.js", 200, "text/javascript; charset=utf-8", "EventSource"},
		{"/view/shards.js", 200, "text/javascript; charset=utf-8", "showBoard"},
		{"/view/shards", 404, "text/plain; charset=utf-8", "not found"}, // of a router that is no replica of a Router
		{"/view/overview", 200, "application/json", `"requests":7`},
		{"/view/routes?q=NS/A", 200, "application/json", `"total":1`},
		{"/view/routes?limit=0", 400, "text/plain; charset=utf-8", `limit "0" is not a number from 1 to 200`},
		{"/view/routes/ns/a", 200, "application/json", `"name":"a"`},
		{"/view/routes/other/a", 404, "text/plain; charset=utf-8", "not found"},
		{"/view/index.html", 404, "text/plain; charset=utf-8", "not found"},
		{"/view/", 404, "text/plain; charset=utf-8", "not found"},
	} {
		status, header, text := ask(t, base+tt.path)
		if status != tt.status || header.Get("Content-Type") != tt.kind || !strings.Contains(text, tt.has) {
			t.Errorf("%s: %d %s %s", tt.path, status, header.Get("Content-Type"), text)
		}
	}
	_, header, text := ask(t, base+"/")
	if got := header.Get("Content-Security-Policy"); got != policy || strings.Contains(got, "unsafe") {
		t.Errorf("policy %q", got)
	}
	if strings.Contains(text, "style=") || strings.Contains(text, "<style") || strings.Contains(text, "://host") && strings.Count(text, "://") > 1 {
		t.Error("the page has styles in it, which its policy does not let in, or names another site")
	}
}

// TestStreamsShareASnapshot: events come at once and then again, and however many look, the router is looked at once in a while.
func TestStreamsShareASnapshot(t *testing.T) {
	base, looked := serve(t)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/view/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("content type %q", kind)
		}
		var o view.Overview
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &o); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		if o.Version != "v1" || o.Traffic.Total != 7 {
			t.Errorf("%+v", o)
		}
	}
	if n := looked.Load(); n > 2 {
		t.Errorf("five streams looked %d times", n)
	}
}
