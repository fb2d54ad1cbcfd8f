package h2

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// TestAnswersThatCameWhole: an endpoint that has answered and ends the connection, in good order or by a reset, takes no answer
// back from clients that have not read it yet.
func TestAnswersThatCameWhole(t *testing.T) {
	for name, end := range map[string]func(c *podConn){
		"GOAWAY and FIN": func(c *podConn) {
			_ = c.fr.WriteGoAway(3, http2.ErrCodeNo, nil)
			c.flush()
			c.peer.CloseWrite()
		},
		"FIN": func(c *podConn) { c.peer.Close() },
		"RST": func(c *podConn) { c.peer.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat("x", 60<<10)
			r := newRig(t)
			p := r.pod2(1, func(c *podConn, q *podRequest) {
				c.say(q.id, "200", body, "content-length", strconv.Itoa(len(body)))
			})
			r.route("app", "app.test", h2c, p.addr)
			slow := r.connect()
			slow.grant = false
			_ = slow.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
			slow.get(1, "/")
			slow.run()
			deaf := r.net.Connect(frontAddr)
			deaf.ReadWindow(1)
			deaf.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"))
			r.net.Run()
			end(p.conns[0])
			r.net.Run()
			_ = slow.fr.WriteWindowUpdate(1, 1<<20)
			_ = slow.fr.WriteWindowUpdate(0, 1<<20)
			slow.run()
			slow.want(1, 200, body)
			deaf.ReadWindow(1 << 20)
			r.net.Run()
			if got := string(deaf.Received()); !strings.HasSuffix(got, "\r\n\r\n"+body) {
				t.Errorf("over HTTP/1.1: %d bytes", len(got))
			}
			r.wantQuiet()
		})
	}
}
