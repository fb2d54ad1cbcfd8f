package explain

import (
	"io"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// FuzzQuery: whatever is asked is answered or refused, and what is answered can be printed.
func FuzzQuery(f *testing.F) {
	f.Add("http://app.test/p?q=1", "", "A: b", false)
	f.Add("https://app.test:8443/", "", "", true)
	f.Add("", "GET / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\n\r\n", "", false)
	f.Add("", ":method: GET\n:scheme: https\n:authority: app.test\n:path: /\n", "", true)
	f.Add("http://[::1%25lo]/", ":", "cookie", false)
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "app"}, Host: "app.test", Policy: routing.Policy{ServerTimeout: time.Second}, CookieName: "c",
		Targets: []balancer.Target{{ID: "pod", Addr: testaddr.Parse("10.0.0.1:8080"), Weight: 1}},
	}
	table, _ := routing.Compile(routing.Options{}, nil, []routing.RouteSpec{spec})
	routing.NewStore().Publish(table)
	x, err := New(Config{Deciding: server.Config{Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}.Deciding})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, url, head, header string, http2 bool) {
		q := Query{URL: url, Header: []string{header}, HTTP2: http2}
		if head != "" {
			q.Head = []byte(head)
		}
		a, err := x.Explain(table, q)
		if err != nil {
			return
		}
		if a.Outcome.Reason == "" || a.Outcome.Text == "" {
			t.Errorf("no outcome: %+v", a)
		}
		if err := a.Text(io.Discard); err != nil {
			t.Error(err)
		}
	})
}
