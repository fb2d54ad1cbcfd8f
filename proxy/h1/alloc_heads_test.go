//go:build !race

package h1_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"turnout/internal/testkit"
	"turnout/proxy"
	"turnout/routing/header"
)

// TestNoAllocationForLargeHeads: what some clients and pods put into heads is no garbage per request either.
func TestNoAllocationForLargeHeads(t *testing.T) {
	fields := func(n, size int) (all string) {
		for i := range n {
			all += fmt.Sprintf("X-Field-%d: %s\r\n", i, strings.Repeat("v", size))
		}
		return all
	}
	cookies := func(name, between string, n int) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("cookie%d=%s", i, strings.Repeat("c", 30)))
		}
		return name + ": " + strings.Join(pairs, between) + "\r\n"
	}
	for name, c := range map[string]struct{ request, answer string }{
		"90 fields":               {fields(90, 20), fields(90, 20)},
		"90 long fields":          {fields(90, 220), fields(90, 220)},
		"30 cookie fields":        {cookies("Cookie", "\r\nCookie: ", 30), cookies("Set-Cookie", "\r\nSet-Cookie: ", 30)},
		"30 cookies in one field": {strings.Replace(cookies("Cookie", "; ", 30), "cookie7=", "sticky=x; cookie7=", 1), ""},
		"20 KiB of cookies":       {cookies("Cookie", "; ", 500) + "Cookie: sticky=x; y=z\r\n", "Set-Cookie: a=" + strings.Repeat("b", 20000) + "\r\n"},
		"20 KiB with the sticky":  {strings.Replace(cookies("Cookie", "; ", 500), "cookie7=", "sticky=x; cookie7=", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			actions, errs := header.Compile(header.Request, []header.Action{{Name: "x-agent", Value: "%[req.hdr(cookie),lower]"}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			r := testkit.StartRouter(t, 1, discard{}, func(c *proxy.Config) {
				c.Captures = &proxy.Captures{Request: []proxy.Capture{{Name: "cookie", Max: 2000}}}
				c.MaxRewrite = 32 << 10
			})
			spec := testkit.Spec("app.test", testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"+c.answer+"\r\nok"))
			spec.CookieName, spec.Policy.CookieAttributes = "sticky", "; path=/; HttpOnly"
			spec.Policy.RequestActions = actions
			r.Publish(t, spec)
			conn, err := net.Dial("tcp", r.Addr.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			request := []byte("GET / HTTP/1.1\r\nHost: app.test\r\n" + c.request + "\r\n")
			buf := make([]byte, 64<<10)
			size := 0
			trip := func() {
				if _, err := conn.Write(request); err != nil {
					t.Fatal(err)
				}
				if size > 0 {
					if _, err := io.ReadFull(conn, buf[:size]); err != nil {
						t.Fatal(err)
					}
					return
				}
				for size < 2 || string(buf[size-2:size]) != "ok" { // the first answer tells how long they all are
					n, err := conn.Read(buf[size:])
					if err != nil {
						t.Fatal(err)
					}
					size += n
				}
			}
			for range 100 {
				trip()
			}
			if !strings.HasPrefix(string(buf), "HTTP/1.1 200 OK\r\n") {
				t.Fatalf("answer %.200q", buf[:size])
			}
			if got := testing.AllocsPerRun(500, trip); got != 0 {
				t.Errorf("%v allocations per request, want 0", got)
			}
		})
	}
}
