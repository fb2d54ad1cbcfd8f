package server_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy/datagram"
	"turnout/routing"
)

// udpEcho answers each datagram with a name and what came, until the test ends or stop is called.
func udpEcho(t testing.TB, name string) (addr netip.AddrPort, stop func()) {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(loopback)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 70000)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf[len(name):])
			if err != nil {
				return
			}
			copy(buf, name)
			_, _ = conn.WriteToUDPAddrPort(buf[:len(name)+n], from)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), func() { conn.Close() }
}

// udpClient sends by a port of its own.
func udpClient(t testing.TB, addr netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// asks sends text and returns what comes back, "" if nothing does for a while. Answers to what was sent before are left out.
func asks(conn *net.UDPConn, text string, patience time.Duration) string {
	question := fmt.Sprintf("#%d", time.Now().UnixNano())
	if _, err := conn.Write([]byte(text + question)); err != nil {
		return err.Error()
	}
	return answerTo(conn, question, patience)
}

// answerTo waits for the answer that ends with a text.
func answerTo(conn *net.UDPConn, question string, patience time.Duration) string {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for buf := make([]byte, 70000); ; {
		n, err := conn.Read(buf)
		if err != nil {
			return ""
		}
		if answer, ok := strings.CutSuffix(string(buf[:n]), question); ok {
			return answer
		}
	}
}

// asksOrDrops is asks, and does not wait for an answer to what the router has dropped.
func (w *web) asksOrDrops(conn *net.UDPConn, text string) string {
	before := w.Datagrams().Dropped[datagram.DropRefused]
	answer := asks(conn, text, impatient)
	for deadline := time.Now().Add(patient); answer == "" && w.Datagrams().Dropped[datagram.DropRefused] == before && time.Now().Before(deadline); {
		answer, _, _ = strings.Cut(answerTo(conn, "", impatient), "#")
	}
	return answer
}

const (
	patient   = 10 * time.Second
	impatient = 20 * time.Millisecond
)

// startUDP starts a router with a port "udp" and a TCP port of the same number.
func startUDP(t *testing.T, change ...func(*server.Config)) *web {
	t.Helper()
	w := startWeb(t, append([]func(*server.Config){func(cfg *server.Config) { cfg.Ports = nil }}, change...)...)
	<-w.Started()
	addr := freePort(t)
	w.set(server.Port{Name: "udp", Addr: addr, Kind: server.PortUDP}, server.Port{Name: "tcp", Addr: addr, Kind: server.PortTCP})
	return w
}

// udpRule is the rule of port "udp", with a backend for each of targets, of this weight; those without a target cannot be used.
func (w *web) udpRule(targets map[string]netip.AddrPort, weights map[string]int) routing.RuleSpec {
	return w.rule("udp", "u", "*", toTarget(netip.AddrPort{}, nil, routing.TermStream), func(s *routing.RuleSpec) {
		for _, key := range []string{"one", "two", "three"} {
			b := routing.BackendSpec{Key: key, Weight: weights[key]}
			if to, ok := targets[key]; ok {
				b.Targets = []balancer.Target{{ID: key, Addr: testaddr.Of(to), Weight: 1}}
			} else {
				b.Status = 500
			}
			s.Backends = append(s.Backends, b)
		}
	})
}

func (w *web) publishUDP(rules ...routing.RuleSpec) {
	w.publish([]routing.ListenerSpec{{Name: "udp", Port: "udp", Stream: true}}, rules...)
}

// TestUDPPorts: what a client sends goes to one endpoint as long as it sends by the same port, and the answers come from where it sent to; clients are shared by weight.
func TestUDPPorts(t *testing.T) {
	w := startUDP(t)
	one, _ := udpEcho(t, "one ")
	two, _ := udpEcho(t, "two ")
	addr := w.Port("udp")
	if addr != w.Port("tcp") {
		t.Errorf("ports of one number are %s and %s", addr, w.Port("tcp"))
	}
	client := udpClient(t, addr)
	if got := asks(client, "x", impatient); got != "" {
		t.Errorf("without a rule: %q", got)
	}
	waitUntil(t, "the datagram without a rule is counted", func() bool { return w.Datagrams().Dropped[datagram.DropNoRoute] == 1 })
	w.publishUDP(w.udpRule(map[string]netip.AddrPort{"one": one, "two": two}, map[string]int{"one": 50, "two": 30, "three": 20}))
	got := map[string]int{}
	for range 100 {
		c := udpClient(t, addr)
		first := w.asksOrDrops(c, "hello")
		name, text, _ := strings.Cut(first, " ")
		if got[name]++; name == "" {
			continue
		}
		if text != "hello" {
			t.Errorf("%q came back", first)
		}
		for range 3 {
			if next := asks(c, "hello", patient); next != first {
				t.Errorf("%q after %q", next, first)
			}
		}
	}
	for name, want := range map[string]int{"one": 50, "two": 30, "": 20} {
		if n := got[name]; n < want-3 || n > want+3 {
			t.Errorf("of 100 clients %d got the answers of %q, want %d", n, name, want)
		}
	}
	d := w.Datagrams()
	if d.Sessions != 100 || d.Begun != 100 || d.In != d.Out || d.In < 300 || d.Dropped[datagram.DropRefused] < 17 || d.Dropped[datagram.DropUnsent] != 0 {
		t.Errorf("counted %+v", d)
	}
	w.set()
	waitUntil(t, "the sessions of a port that is gone have ended", func() bool { return w.Datagrams().Sessions == 0 && w.Stats().Active == 0 })
	if got := asks(udpClient(t, addr), "x", impatient); got == "one x" || got == "two x" {
		t.Errorf("a port that is gone answers %q", got)
	}
}

// TestUDPBursts: many datagrams at once, and long ones, come through in their order.
func TestUDPBursts(t *testing.T) {
	w := startUDP(t)
	one, _ := udpEcho(t, "")
	w.publishUDP(w.udpRule(map[string]netip.AddrPort{"one": one}, map[string]int{"one": 1}))
	c := udpClient(t, w.Port("udp"))
	long := strings.Repeat("a", 50000)
	if got := asks(c, long, patient); got != long {
		t.Errorf("of %d bytes %d came back", len(long), len(got))
	}
	_ = c.SetDeadline(time.Now().Add(patient))
	buf := make([]byte, 100)
	const burst = 100 // as many as wait in the buffer of a socket
	for range 10 {
		for i := range burst {
			if _, err := fmt.Fprint(c, i); err != nil {
				t.Fatal(err)
			}
		}
		for i := range burst {
			if n, err := c.Read(buf); err != nil || string(buf[:n]) != fmt.Sprint(i) {
				t.Fatalf("%q, %v, want %d", buf[:n], err, i)
			}
		}
	}
}

// TestUDPSessionsEnd: when both sides are silent, when nobody receives at the endpoint, and when the table would not choose it any more.
func TestUDPSessionsEnd(t *testing.T) {
	lines := &counter{}
	w := startUDP(t, func(cfg *server.Config) { cfg.UDPIdle, cfg.Proxy.AccessLog = 50*time.Millisecond, lines })
	one, stop := udpEcho(t, "one ")
	two, _ := udpEcho(t, "two ")
	both := map[string]netip.AddrPort{"one": one, "two": two}
	w.publishUDP(w.udpRule(both, map[string]int{"one": 1}))
	c := udpClient(t, w.Port("udp"))
	if got := asks(c, "x", patient); got != "one x" {
		t.Fatal(got)
	}
	waitUntil(t, "the session is over and logged", func() bool { return w.Datagrams().Sessions == 0 && lines.n.Load() == 1 })

	until := func(what, want string) {
		t.Helper()
		waitUntil(t, what, func() bool { return asks(c, "x", impatient) == want })
	}
	until("another session", "one x")
	w.publishUDP(w.udpRule(both, map[string]int{"two": 1}))
	if got := asks(c, "x", patient); got != "two x" {
		t.Errorf("after the weights changed: %q", got)
	}
	w.publishUDP(w.udpRule(map[string]netip.AddrPort{"one": one}, map[string]int{"one": 1, "two": 1}))
	until("the endpoint that can be used", "one x")
	stop()
	w.publishUDP(w.udpRule(both, map[string]int{"one": 1, "two": 1}))
	until("an endpoint that receives", "two x")
	w.publishUDP(w.udpRule(nil, map[string]int{"one": 1}))
	if got := asks(c, "x", impatient); got != "" {
		t.Errorf("without an endpoint: %q", got)
	}
}

// TestUDPSessionsAreBounded opens one session more than the share of the namespace, two of four.
// The session that was silent longest ends; its client continues with a new session, possibly at
// another endpoint.
func TestUDPSessionsAreBounded(t *testing.T) {
	var bounds bound.Counts
	w := startUDP(t, func(cfg *server.Config) { cfg.Loops, cfg.Limits.UDPSessions, cfg.Bounds = 1, 4, &bounds })
	one, _ := udpEcho(t, "")
	w.publishUDP(w.udpRule(map[string]netip.AddrPort{"one": one}, map[string]int{"one": 1}))
	var clients []*net.UDPConn
	for range 3 {
		clients = append(clients, udpClient(t, w.Port("udp")))
	}
	for i, c := range []int{0, 1, 0, 2, 0, 1} { // 2 takes the place of 1, and 1 that of 2
		if got := asks(clients[c], "x", patient); got != "x" {
			t.Errorf("%d: %q", i, got)
		}
	}
	if d := w.Datagrams(); d.Sessions != 2 || d.Begun != 4 || bounds.Of(bound.DatagramSessions) != 2 {
		t.Errorf("%+v, the bound was reached %d times", d, bounds.Of(bound.DatagramSessions))
	}
}

// TestUDPHandOver: a successor goes on with the sockets, and answers to what the one before it has sent come back.
func TestUDPHandOver(t *testing.T) {
	old := startUDP(t)
	one, _ := udpEcho(t, "one ")
	old.publishUDP(old.udpRule(map[string]netip.AddrPort{"one": one}, map[string]int{"one": 1}))
	c := udpClient(t, old.Port("udp"))
	if got := asks(c, "x", patient); got != "one x" {
		t.Fatal(got)
	}
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
	for _, err := range next.SetPorts([]server.Port{{Name: "udp", Addr: old.Port("udp").String(), Kind: server.PortUDP}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sockets {
		s.Close()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- next.Run(ctx) }()
	<-next.Started()
	old.HandOver()
	two, _ := udpEcho(t, "two ")
	successor := &web{t: t, Server: next, backend: old.backend, dir: old.dir, authority: old.authority}
	successor.publishUDP(successor.udpRule(map[string]netip.AddrPort{"two": two}, map[string]int{"two": 1}))
	if got := asks(c, "x", patient); got != "two x" {
		t.Errorf("after the handover: %q", got)
	}
	begun := time.Now()
	stop()
	if err := <-ended; err != nil || time.Since(begun) > 20*time.Second {
		t.Errorf("the end took %v: %v", time.Since(begun), err)
	}
}

// TestUDPDoesNotAllocate: what belongs to a session that has begun costs no memory.
func TestUDPDoesNotAllocate(t *testing.T) {
	w := startUDP(t)
	one, _ := udpEcho(t, "")
	w.publishUDP(w.udpRule(map[string]netip.AddrPort{"one": one}, map[string]int{"one": 1}))
	c := udpClient(t, w.Port("udp"))
	_ = c.SetDeadline(time.Now().Add(patient))
	text, buf := []byte("hello"), make([]byte, 100)
	if allocs := testing.AllocsPerRun(2000, func() {
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}); allocs >= 1 { // of the whole process
		t.Errorf("%v allocations for a datagram and its answer", allocs)
	}
}

// BenchmarkUDP is a datagram and its answer through the router, one client at a time, and as often again without it; in bursts of 32.
func BenchmarkUDP(b *testing.B) {
	echo, _ := udpEcho(b, "")
	s, err := server.New(server.Config{Loops: 1})
	if err != nil {
		b.Fatal(err)
	}
	table, _ := routing.CompileRules(routing.Options{Registry: s.Registry()}, s.Store().Load(), []routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "u"}, Listener: "l", Host: "*", Wildcard: true, Labels: true, Termination: routing.TermStream,
		Targets: []balancer.Target{{ID: "echo", Addr: testaddr.Of(echo), Weight: 1}},
	}})
	table, _ = table.ApplyListeners([]routing.ListenerSpec{{Name: "l", Port: "udp", Stream: true}}, nil)
	s.Store().Publish(table)
	if err := s.SetPorts([]server.Port{{Name: "udp", Addr: loopback, Kind: server.PortUDP}})[0]; err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for name, addr := range map[string]netip.AddrPort{"relayed": s.Port("udp"), "direct": echo} {
		b.Run(name, func(b *testing.B) {
			c := udpClient(b, addr)
			const burst = 32
			text, buf := make([]byte, 100), make([]byte, 200)
			b.ReportAllocs()
			for b.Loop() {
				for range burst {
					if _, err := c.Write(text); err != nil {
						b.Fatal(err)
					}
				}
				_ = c.SetReadDeadline(time.Now().Add(patient))
				for range burst {
					if _, err := c.Read(buf); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
