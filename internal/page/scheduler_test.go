package page

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnout/controller/shard/show"
)

// TestSchedulerAnswers: each path has its kind of content; what is not there, cannot be used, or nobody knows now is said to be so.
func TestSchedulerAnswers(t *testing.T) {
	var boards int
	h, err := NewScheduler(SchedulerConfig{
		Version: "v1", Clock: func() time.Time { return time.Unix(1000, 0) },
		Board: func(context.Context) (*show.Board, error) {
			boards++
			return &show.Board{Here: "<me>", Waits: []show.Line{}}, nil
		},
		Bindings: func(_ context.Context, s show.Search) (show.Page, error) {
			if s.Router == "none" {
				return show.Page{}, errors.New("another process leads")
			}
			return show.Page{Total: s.Limit}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		path   string
		status int
		kind   string
		has    string
	}{
		{"/", 200, "text/html; charset=utf-8", `<script src="/view/scheduler.js" type="module">`},
		{"/view/page.css", 200, "text/css; charset=utf-8", "prefers-color-scheme"},
		{"/view/scheduler.js", 200, "text/javascript; charset=utf-8", "import"},
		{"/view/parts.js", 200, "text/javascript; charset=utf-8", "export"},
		{"/view/shards", 200, "application/json", `"here":"\u003cme\u003e"`},
		{"/view/shards", 200, "application/json", `"moves":null,"version":"v1"`},
		{"/view/bindings?limit=7", 200, "application/json", `"total":7`},
		{"/view/bindings?limit=0", 400, "text/plain; charset=utf-8", "limit"},
		{"/view/bindings?router=none", 503, "text/plain; charset=utf-8", "another process leads"},
		{"/view/overview", 404, "text/plain; charset=utf-8", "not found"},
		{"/view/scheduler.html", 404, "text/plain; charset=utf-8", "not found"},
	} {
		status, header, text := ask(t, server.URL+c.path)
		if status != c.status || header.Get("Content-Type") != c.kind || !strings.Contains(text, c.has) {
			t.Errorf("%s: %d %s %s", c.path, status, header.Get("Content-Type"), text)
		}
	}
	if boards != 1 {
		t.Errorf("the board was made %d times at one time", boards)
	}
	if _, header, _ := ask(t, server.URL); header.Get("Content-Security-Policy") != policy {
		t.Error("no policy")
	}
	if _, err := NewScheduler(SchedulerConfig{}); err == nil {
		t.Error("a page of nothing")
	}
}
