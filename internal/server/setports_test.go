package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"turnout/internal/server"
	"turnout/routing"
)

// serve publishes a listener for each of these ports, those whose name begins with "tls" with TLS, that leads any host to the backend.
func (w *web) serve(ports ...string) {
	w.t.Helper()
	var listeners []routing.ListenerSpec
	var rules []routing.RuleSpec
	for _, p := range ports {
		l, rule := routing.ListenerSpec{Name: p, Port: p}, w.rule(p, p, "*")
		if strings.HasPrefix(p, "tls") {
			l.TLS, l.Certificates, rule.Termination = true, []*routing.CertificateSpec{w.served("a.test")}, routing.TermEdge
		}
		listeners, rules = append(listeners, l), append(rules, rule)
	}
	w.publish(listeners, rules...)
}

// set sets the ports, none of which may fail.
func (w *web) set(ports ...server.Port) {
	w.t.Helper()
	w.know(ports)
	for i, err := range w.SetPorts(ports) {
		if err != nil {
			w.t.Fatal(ports[i], err)
		}
	}
}

const loopback = "127.0.0.1:0"

// dial connects to an address, with a deadline.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// waitUntil asks until something is so.
func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not yet: %s", what)
		}
	}
}

func refuses(addr netip.AddrPort) bool {
	conn, err := net.DialTimeout("tcp", addr.String(), 10*time.Second)
	if err == nil {
		conn.Close()
	}
	return err != nil && refused(err)
}

const toA = "GET / HTTP/1.1\r\nHost: a.test"

// TestSetPorts: ports open and close while the server runs, each without touching the others, and speak what they are to speak.
func TestSetPorts(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	w.serve("web", "tls", "later")
	w.set(server.Port{Name: "web", Addr: loopback}, server.Port{Name: "tls", Addr: loopback, Kind: server.PortTLS})
	web, secure := w.Port("web"), w.Port("tls")
	for _, c := range []struct {
		port netip.AddrPort
		url  string
		args []string
		want string
	}{
		{web, "http://a.test/", nil, `HTTP/1.1 web a.test client=""`},
		{web, "http://a.test/", []string{"--http2-prior-knowledge"}, `HTTP/2 web a.test client=""`},
		{secure, "https://a.test/", nil, `HTTP/2 tls a.test client=""`},
		{secure, "https://a.test/", []string{"--http1.1"}, `HTTP/1.1 tls a.test client=""`},
	} {
		if got := w.ask(c.port, c.url, c.args...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.url, c.args, got, c.want)
		}
	}
	kept := dial(t, web.String())
	ask(t, kept, toA)
	taken, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	errs := w.SetPorts([]server.Port{
		{Name: "nowhere", Addr: taken.Addr().String()}, {Name: "web", Addr: loopback}, {Name: "later", Addr: loopback}, {Name: "later", Addr: loopback}, {Name: "same", Addr: w.HTTP().String()},
	})
	for i, want := range []bool{true, false, false, true, true} {
		if (errs[i] != nil) != want {
			t.Errorf("port %d: %v", i, errs[i])
		}
	}
	if w.Port("web") != web || w.Port("nowhere").IsValid() || w.Port("tls").IsValid() {
		t.Errorf("ports: %v, %v, %v", w.Port("web"), w.Port("nowhere"), w.Port("tls"))
	}
	if !refuses(secure) {
		t.Error("the port that is gone is still open")
	}
	if answer, _ := ask(t, kept, toA); answer.StatusCode != http.StatusOK || answer.Close {
		t.Errorf("a connection to the port that stayed: %d, close %v", answer.StatusCode, answer.Close)
	}
	if got := w.ask(w.Port("later"), "http://a.test/"); got != `HTTP/1.1 later a.test client=""` {
		t.Errorf("the new port: %s", got)
	}
	w.set()
	if !refuses(web) {
		t.Error("a port is open although there is to be none")
	}
	if got := w.ask(w.HTTP(), "http://a.test/"); got != "503" {
		t.Errorf("the pair: %s", got)
	}
}

// TestSetPortsMoves: whatever a port or an address is to become, no connection is refused meanwhile.
func TestSetPortsMoves(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	w.serve("a", "b", "tls")
	first, second, third := freePort(t), freePort(t), freePort(t)
	w.set(server.Port{Name: "a", Addr: first})
	asked := make(chan string) // what the first address leads to, without an end
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(asked)
		for {
			got := "refused"
			if conn, err := net.Dial("tcp", first); err == nil {
				_, _ = io.WriteString(conn, toA+"\r\nConnection: close\r\n\r\n")
				answer, _ := io.ReadAll(conn)
				got = string(answer[bytes.LastIndexByte(answer, '\n')+1:])
				conn.Close()
			}
			select {
			case asked <- got:
			case <-stop:
				return
			}
		}
	}()
	until := func(want string) {
		t.Helper()
		for range 2 { // one may have been on its way
			if got := <-asked; got == "refused" {
				t.Error(got)
			}
		}
		if got := <-asked; !strings.HasPrefix(got, want+" ") {
			t.Errorf("%q, want the answer of %s", got, want)
		}
	}
	until("a")
	kept := dial(t, first)
	ask(t, kept, toA)

	w.set(server.Port{Name: "a", Addr: second}, server.Port{Name: "b", Addr: first}) // another owner of the same address
	until("b")
	if _, body := ask(t, kept, toA); !strings.HasPrefix(body, "a ") {
		t.Errorf("a connection of before: %q", body)
	}
	w.set(server.Port{Name: "a", Addr: first}, server.Port{Name: "b", Addr: second}) // they change places
	until("a")
	if _, body := ask(t, dial(t, second), toA); !strings.HasPrefix(body, "b ") {
		t.Errorf("the other one: %q", body)
	}
	if errs := w.SetPorts([]server.Port{{Name: "a", Addr: first}, {Name: "b", Addr: w.HTTP().String()}}); errs[0] != nil || errs[1] == nil {
		t.Error(errs)
	}
	if _, body := ask(t, dial(t, second), toA); !strings.HasPrefix(body, "b ") {
		t.Errorf("one that cannot move: %q", body)
	}
	w.set(server.Port{Name: "a", Addr: first}, server.Port{Name: "b", Addr: third})
	if !refuses(netip.MustParseAddrPort(second)) || w.Port("b").String() != third {
		t.Errorf("after a move b is at %s", w.Port("b"))
	}
	until("a")
	w.set(server.Port{Name: "tls", Addr: third, Kind: server.PortTLS}, server.Port{Name: "a", Addr: first})
	if got := w.ask(w.Port("tls"), "https://a.test/"); got != `HTTP/2 tls a.test client=""` {
		t.Errorf("an address that is of another kind now: %s", got)
	}
}

// TestSetPortsDrains: connections of a port that is gone end after what they are about, at the latest when the time is over, and
// those of another port at the same address do not.
func TestSetPortsDrains(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	w.serve("web", "tls", "other")
	addr := freePort(t)
	w.set(server.Port{Name: "web", Addr: addr}, server.Port{Name: "tls", Addr: loopback, Kind: server.PortTLS}, server.Port{Name: "other", Addr: loopback})
	idle, busy, stranger := dial(t, addr), dial(t, addr), dial(t, w.Port("other").String())
	ask(t, idle, toA)
	ask(t, stranger, toA)
	if _, err := io.WriteString(busy, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, "https://"+w.Port("tls").String()+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "a.test"
	transport.TLSClientConfig.ServerName = "a.test"
	if answer, err := transport.RoundTrip(request); err != nil || answer.ProtoMajor != 2 {
		t.Fatal(answer, err)
	} else {
		answer.Body.Close()
	}
	waitUntil(t, "the request with half a body has begun", func() bool { return w.Stats().Active > 0 })
	w.set(server.Port{Name: "new", Addr: addr}, server.Port{Name: "other", Addr: loopback})
	if n, err := idle.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("an idle connection: %d, %v", n, err)
	}
	waitUntil(t, "the connection of HTTP/2 has ended", func() bool { return w.Stats().Open[1] == 0 })
	_, _ = io.WriteString(busy, "cde")
	answer, err := http.ReadResponse(bufio.NewReader(busy), nil)
	if err != nil || answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("a request under way: %+v, %v", answer, err)
	}
	if _, body := ask(t, stranger, toA); !strings.HasPrefix(body, "other ") {
		t.Errorf("a connection to another port: %q", body)
	}
	if answer, _ := ask(t, dial(t, addr), toA); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the port that has the address now: %d", answer.StatusCode)
	}
}

// TestSetPortsCuts: what has not ended in the time of a drain is cut.
func TestSetPortsCuts(t *testing.T) {
	c := startChanging(t, func(cfg *server.Config) { cfg.Proxy.Timeouts.Drain = time.Millisecond })
	c.SetPorts([]server.Port{{Name: "web", Addr: loopback}})
	silent := c.connect(c.Port("web"))
	pair := c.connect(c.HTTP())
	ask(t, pair, plainRequest)
	waitUntil(t, "both connections are there", func() bool { return c.Stats().Open[0] == 2 })
	c.SetPorts(nil)
	if n, err := silent.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("a connection without a request: %d, %v", n, err)
	}
	ask(t, pair, plainRequest)
}

// TestSetPortsHandsOver: a successor goes on with the ports that it is given before it takes over; the one before it opens none any more.
func TestSetPortsHandsOver(t *testing.T) {
	old := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-old.Started()
	port := server.Port{Name: "web", Addr: freePort(t)}
	old.serve("web")
	old.set(port)
	sockets, err := old.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	next, err := server.New(server.Config{Loops: 2, Inherit: func(name string) []int {
		for i := range sockets {
			if sockets[i].Name == name {
				fds := sockets[i].Sockets
				sockets[i].Sockets = nil
				return fds
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sockets {
		if !strings.HasPrefix(s.Name, "port ") {
			s.Close()
		}
	}
	for _, err := range next.SetPorts([]server.Port{port}) { // before Listen
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := next.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- next.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-next.Started()
	old.HandOver()
	other := freePort(t)
	if errs := old.SetPorts([]server.Port{{Name: "late", Addr: other}}); errs[0] != nil || !refuses(netip.MustParseAddrPort(other)) {
		t.Errorf("a port after the end: %v", errs)
	}
	successor := &web{t: t, Server: next, backend: old.backend, dir: old.dir, authority: old.authority}
	successor.serve("web")
	if _, body := ask(t, dial(t, port.Addr), toA); !strings.HasPrefix(body, "web ") {
		t.Errorf("the successor answers %q", body)
	}
	if next.Stats().Connections[0] != 1 {
		t.Errorf("the successor has had %d connections", next.Stats().Connections[0])
	}
}
