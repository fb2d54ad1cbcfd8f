package server

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/bound"
)

// dial connects to a server from an address of loopback.
func (r *running) dial(from string) net.Conn {
	r.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", r.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// framed is a message as it goes over TCP.
func framed(t testing.TB, q *dns.Msg) []byte {
	t.Helper()
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

func receive(conn net.Conn) (*dns.Msg, error) {
	return (&dns.Conn{Conn: conn}).ReadMsg()
}

// TestPipelining: several queries in one piece, and a query in many, are answered one after the other.
func TestPipelining(t *testing.T) {
	r := start(t, Config{})
	conn := r.dial("127.0.0.1")
	var all []byte
	for i := range 10 {
		q := question("a."+origin, dns.TypeA)
		q.Id = uint16(i)
		all = append(all, framed(t, q)...)
	}
	if _, err := conn.Write(all[:len(all)-7]); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if i == 9 {
			for _, b := range all[len(all)-7:] {
				if _, err := conn.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, err := receive(conn)
		if err != nil || m.Id != uint16(i) || len(m.Answer) != 2 {
			t.Fatalf("%d: %v %v", i, m, err)
		}
	}
}

// ended waits for the end of a connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection goes on: %v", err)
	}
}

func TestConnectionsEnd(t *testing.T) {
	r := start(t, Config{Limits: Limits{Idle: 50 * time.Millisecond}})
	silent := r.dial("127.0.0.1")
	ended(t, silent)
	half := r.dial("127.0.0.1")
	if _, err := half.Write([]byte{0, 40, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	ended(t, half)
	long := r.dial("127.0.0.1")
	if _, err := long.Write([]byte{0x10, 0x01}); err != nil { // 4097
		t.Fatal(err)
	}
	ended(t, long)
	answer := question("a."+origin, dns.TypeA)
	answer.Response = true
	odd := r.dial("127.0.0.1")
	if _, err := odd.Write(framed(t, answer)); err != nil {
		t.Fatal(err)
	}
	ended(t, odd)
	if got := r.Stats(); got.Malformed != 1 || got.TCP != 0 {
		t.Errorf("%+v", got)
	}
	last := r.dial("127.0.0.1")
	r.stop()
	ended(t, last)
	if got := r.Stats(); got.Connections != 0 {
		t.Errorf("%+v", got)
	}
}

// works reports whether a connection is served.
func works(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if _, err := conn.Write(framed(t, question("a."+origin, dns.TypeA))); err != nil {
		return false
	}
	_, err := receive(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("neither served nor closed")
	}
	return err == nil
}

// TestConnectionsOfOneClient: a prefix has its share, and others are served.
func TestConnectionsOfOneClient(t *testing.T) {
	bounds := new(bound.Counts)
	r := start(t, Config{Bounds: bounds, Limits: Limits{ClientShare: 3}})
	var conns []net.Conn
	for range 3 {
		conns = append(conns, r.dial("127.0.0.1"))
		if !works(t, conns[len(conns)-1]) {
			t.Fatal("not served")
		}
	}
	if works(t, r.dial("127.0.0.200")) {
		t.Error("served beyond the share of its /24")
	}
	if !works(t, r.dial("127.0.1.1")) || bounds.Of(bound.NameClients) != 1 {
		t.Error("another client is not served")
	}
	_ = conns[0].Close()
	for !works(t, r.dial("127.0.0.1")) { // until the server has seen it
	}
}

// TestManyConnections: beyond the bound the one that has been silent for longest is closed.
func TestManyConnections(t *testing.T) {
	bounds := new(bound.Counts)
	r := start(t, Config{Bounds: bounds, Limits: Limits{Connections: 3}})
	first, second, third := r.dial("127.0.1.1"), r.dial("127.0.2.1"), r.dial("127.0.3.1")
	for _, conn := range []net.Conn{first, second, third, first} {
		if !works(t, conn) {
			t.Fatal("not served")
		}
	}
	fourth := r.dial("127.0.4.1")
	if !works(t, fourth) || !works(t, first) || !works(t, third) {
		t.Error("not served")
	}
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || bounds.Of(bound.NameConnections) != 1 || r.Stats().Connections != 3 {
		t.Errorf("the silent one: %v, %+v", err, r.Stats())
	}
}
