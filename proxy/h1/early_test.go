package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestEarlyAnswers: whether pod or router answers a large upload before its end, a client that sends everything before it reads gets the
// answer, and its connection is not reset.
func TestEarlyAnswers(t *testing.T) {
	const size = 8 << 20
	body := strings.Repeat("x", size)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
	for name, c := range map[string]struct {
		head, body, answer string
	}{
		"of the endpoint":          {"POST / HTTP/1.1\r\nHost: app.test\r\n" + length, body, "HTTP/1.1 413 "},
		"no route":                 {"POST / HTTP/1.1\r\nHost: nowhere.test\r\n" + length, body, "HTTP/1.1 503 "},
		"refused method":           {"TRACE / HTTP/1.1\r\nHost: app.test\r\n" + length, body, "HTTP/1.1 405 "},
		"expectation":              {"POST / HTTP/1.1\r\nHost: app.test\r\nExpect: more\r\n" + length, body, "HTTP/1.1 417 "},
		"a body of broken grammar": {"POST / HTTP/1.1\r\nHost: silent.test\r\nTransfer-Encoding: chunked\r\n\r\n", "zz\r\n" + body, "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			addr := addrPort("198.51.100.3:80")
			r.net.Accept(addr, func(p *memnet.Peer) {
				p.OnData = func(*memnet.Peer) {
					p.TakeReceived()
					p.Write([]byte("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"))
					p.OnData = func(*memnet.Peer) { p.TakeReceived() }
				}
			})
			silent := addrPort("198.51.100.4:80")
			r.net.Accept(silent, nil)
			r.route("app", "app.test", nil, addr)
			r.route("silent", "silent.test", nil, silent)
			client := r.net.Connect(frontAddr)
			client.StopReading()
			client.Write([]byte(c.head))
			r.net.Run()
			client.Write([]byte(c.body))
			r.net.Run()
			if client.Unsent() > 0 {
				t.Errorf("%d bytes of the upload were not taken", client.Unsent())
			}
			client.StartReading()
			got := string(client.Received())
			if !strings.HasPrefix(got, c.answer) || !strings.Contains(got, "connection: close\r\n") || client.ResetSeen() || !client.EOF() {
				t.Errorf("received %.100q, reset %v", got, client.ResetSeen())
			}
			client.Close()
			r.net.Run()
			if n := r.server.Open(false); n != 0 {
				t.Errorf("%d connections are left", n)
			}
			r.wantQuiet()
		})
	}
}

// TestEarlyAnswerIsBounded: what is sent after an early answer is not read without end; what was announced is.
func TestEarlyAnswerIsBounded(t *testing.T) {
	var counts bound.Counts
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(cfg *proxy.Config) { cfg.Bounds = &counts }})
	chunked := "POST / HTTP/1.1\r\nHost: nowhere.test\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"
	announced := "POST / HTTP/1.1\r\nHost: nowhere.test\r\nContent-Length: 100000000\r\n\r\n"
	for _, c := range []struct {
		head        string
		size, reset int
	}{{chunked, mostUnannounced - 1000, 0}, {chunked, mostUnannounced + 200<<10, 1}, {announced, 100000000, 0}} {
		client := r.say(c.head)
		piece := make([]byte, 1<<20)
		for left := c.size; left > 0; left -= len(piece) {
			client.Write(piece[:min(left, len(piece))])
			r.net.Run()
		}
		client.Close()
		r.net.Run()
		if n := counts.Of(bound.EarlyAnswer); n != uint64(c.reset) || r.server.Open(false) != 0 {
			t.Errorf("%d bytes: the bound was reached %d times, %d connections are left", c.size, n, r.server.Open(false))
		}
		counts = bound.Counts{}
	}
	client := r.say(announced)
	for range 31 {
		client.Write([]byte("x"))
		r.net.Advance(time.Second)
	}
	if counts.Of(bound.EarlyAnswer) != 1 || r.server.Open(false) != 0 {
		t.Errorf("%d connections are left of one that sent slowly, the bound was reached %d times", r.server.Open(false), counts.Of(bound.EarlyAnswer))
	}
	r.wantQuiet()
}
