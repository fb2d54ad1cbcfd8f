package server

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// secondary is a server that is told of changes, and answers as it is made to.
type secondary struct {
	addr netip.AddrPort

	mu     sync.Mutex
	told   []*dns.Msg
	rcode  int
	silent int // messages that it does not answer
	moved  chan struct{}
}

// startSecondary starts one with keys that does not answer the first few messages, and the others with an rcode.
func startSecondary(t *testing.T, with map[string]string, silent, rcode int) *secondary {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &secondary{addr: netip.MustParseAddrPort(conn.LocalAddr().String()), silent: silent, rcode: rcode, moved: make(chan struct{}, 1000)}
	accept := func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }
	server := &dns.Server{PacketConn: conn, Handler: s, TsigSecret: with, MsgAcceptFunc: accept}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = server.Shutdown()
		<-ended
	})
	return s
}

// ServeDNS implements dns.Handler.
func (s *secondary) ServeDNS(w dns.ResponseWriter, m *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.moved <- struct{}{} }()
	if s.told = append(s.told, m); s.silent > 0 {
		s.silent--
		return
	}
	answer := new(dns.Msg).SetRcode(m, s.rcode)
	if sig := m.IsTsig(); sig != nil {
		if w.TsigStatus() != nil {
			answer.Rcode = dns.RcodeNotAuth
		}
		answer.SetTsig(sig.Hdr.Name, sig.Algorithm, 300, time.Now().Unix())
	}
	_ = w.WriteMsg(answer)
}

// next waits for the next message.
func (s *secondary) next(t *testing.T) *dns.Msg {
	t.Helper()
	select {
	case <-s.moved:
	case <-time.After(30 * time.Second):
		t.Fatal("not told")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[len(s.told)-1]
}

func TestNotify(t *testing.T) {
	plain, signed := startSecondary(t, nil, 0, 0), startSecondary(t, secrets, 0, 0)
	r := start(t, Config{Keys: keys(t), Notify: []Secondary{{Addr: plain.addr}, {Addr: signed.addr, Key: "other"}}})
	for _, s := range []*secondary{plain, signed} {
		m := s.next(t)
		soa, ok := m.Answer[0].(*dns.SOA)
		if !ok || soa.Serial != 1 || m.Opcode != dns.OpcodeNotify || !m.Authoritative || m.Question[0].Name != origin || m.Question[0].Qtype != dns.TypeSOA || (m.IsTsig() != nil) != (s == signed) {
			t.Errorf("%v", m)
		}
	}
	r.Publish(setOf(t, 1, shard1())) // the same serial: no change
	r.Publish(setOf(t, 2, shard1()))
	for _, s := range []*secondary{plain, signed} {
		if m := s.next(t); m.Answer[0].(*dns.SOA).Serial != 2 {
			t.Errorf("%v", m)
		}
	}
	r.wait(Notified)
}

// TestNotifyAgain: a secondary that does not answer is told again, and of the serial as it is then.
func TestNotifyAgain(t *testing.T) {
	s := startSecondary(t, nil, 2, 0)
	r := start(t, Config{Notify: []Secondary{{Addr: s.addr}}, Limits: Limits{NotifyTimeout: 20 * time.Millisecond}})
	s.next(t)
	s.next(t)
	if m := s.next(t); m.Answer[0].(*dns.SOA).Serial != 1 {
		t.Error(m)
	}
	if e := r.wait(Notified); e.Serial != 1 || e.Peer != s.addr || r.Stats().Notified != 1 {
		t.Errorf("%+v", e)
	}
}

func TestNotifyInVain(t *testing.T) {
	s := startSecondary(t, nil, 1000, 0)
	r := start(t, Config{Notify: []Secondary{{Addr: s.addr}}, Limits: Limits{NotifyTimeout: time.Millisecond, NotifyAttempts: 3}})
	if e := r.wait(NotifyFailed); e.Err == nil || e.Zone != origin {
		t.Errorf("%+v", e)
	}
	s.mu.Lock()
	told := len(s.told)
	s.mu.Unlock()
	if got := r.Stats(); told > 3 || got.NotNotified != 1 || got.Notified != 0 {
		t.Errorf("told %d times, %+v", told, got)
	}
}

// TestNotifyRefused: an answer is an answer; nobody asks again.
func TestNotifyRefused(t *testing.T) {
	s := startSecondary(t, nil, 0, dns.RcodeNotAuth)
	r := start(t, Config{Notify: []Secondary{{Addr: s.addr}}})
	if e := r.wait(NotifyFailed); e.Err.Error() != "the answer is NOTAUTH" {
		t.Errorf("%+v", e)
	}
	if s.next(t); len(s.moved) != 0 {
		t.Error("told again")
	}
}

// TestNotifyEnds: a secondary that never answers does not hold up the end of the server.
func TestNotifyEnds(t *testing.T) {
	s := startSecondary(t, nil, 1000, 0)
	r := start(t, Config{Notify: []Secondary{{Addr: s.addr}}, Limits: Limits{NotifyTimeout: time.Hour}})
	s.next(t)
	r.stop()
	if got := r.Stats(); got.NotNotified != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNotifyOfWhatIsGone: nobody is told of a zone that is not there any more, or by a key that is not.
func TestNotifyOfWhatIsGone(t *testing.T) {
	s, err := New(Config{Addr: "127.0.0.1:0", Keys: keys(t), Notify: []Secondary{{Addr: netip.MustParseAddrPort("192.0.2.1:53"), Key: "other"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := s.notifiers[0]
	n.changed("gone.test.")
	if !n.tell(t.Context(), n.pending()[0]) || len(n.pending()) != 0 {
		t.Error("told of a zone that is gone")
	}
	s.SetKeys(nil)
	s.Publish(setOf(t, 3, shard1()))
	if answered, err := n.exchange(t.Context(), s.Zones().Zone(origin).SOA(), time.Second); answered || err == nil {
		t.Error("told without a key")
	}
}
