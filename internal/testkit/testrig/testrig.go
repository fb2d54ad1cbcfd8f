// Package testrig is what the tests of proxy's packages share: routes that are published one by one, endpoints that answer by a
// script on the in-memory network, and an access log that is kept. Unlike testkit it knows none of these packages but proxy, so
// that their own tests can use it.
package testrig

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// Log is an access log that is kept.
type Log []proxy.Record

// Log implements proxy.AccessLog.
func (l *Log) Log(rec *proxy.Record) {
	kept := *rec
	kept.Captured = nil
	for _, v := range rec.Captured {
		kept.Captured = append(kept.Captured, bytes.Clone(v))
	}
	kept.Method, kept.Host, kept.Target = bytes.Clone(rec.Method), bytes.Clone(rec.Host), bytes.Clone(rec.Target)
	kept.UniqueID, kept.UserAgent, kept.Referer = bytes.Clone(rec.UniqueID), bytes.Clone(rec.UserAgent), bytes.Clone(rec.Referer)
	*l = append(*l, kept)
}

// WantReason fails the test unless the last record has this reason.
func (l *Log) WantReason(t testing.TB, want proxy.Reason) {
	t.Helper()
	if len(*l) == 0 || (*l)[len(*l)-1].Reason != want {
		t.Fatalf("want last reason %v, log is %+v", want, *l)
	}
}

// Routes are what a router serves.
type Routes struct {
	Store    *routing.Store
	Registry *balancer.Registry
	Specs    []routing.RouteSpec // who changes one publishes it
}

// NewRoutes returns none yet.
func NewRoutes() *Routes {
	return &Routes{Store: routing.NewStore(), Registry: balancer.NewRegistry()}
}

// Add publishes one more route of namespace ns, to servers at these addresses; change may alter it first.
func (r *Routes) Add(t testing.TB, name, host string, change func(*routing.RouteSpec), addrs ...netip.AddrPort) {
	t.Helper()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: name}, Host: host,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
	}
	for _, a := range addrs {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:svc::" + a.String(), Addr: testaddr.Of(a), Weight: 1})
	}
	if change != nil {
		change(&spec)
	}
	r.Specs = append(r.Specs, spec)
	r.Publish(t)
}

// Publish publishes Specs as they are.
func (r *Routes) Publish(t testing.TB) {
	t.Helper()
	table, rejected := routing.Compile(routing.Options{Registry: r.Registry}, r.Store.Load(), r.Specs)
	if len(rejected) > 0 {
		t.Fatalf("rejected: %v", rejected)
	}
	r.Store.Publish(table)
}

// Servers are those of a route, by its place in Specs.
func (r *Routes) Servers(i int) []*balancer.Server {
	return r.Registry.Pool(r.Specs[i].RouteKey.String()).Servers()
}

// WantIdle fails the test if anything is left of any exchange.
func (r *Routes) WantIdle(t testing.TB, w *proxy.Worker) {
	t.Helper()
	var sums proxy.Totals
	w.Totals(&sums)
	if sums.Active != 0 {
		t.Errorf("%d exchanges are still active", sums.Active)
	}
	for i := range r.Specs {
		for _, v := range r.Servers(i) {
			if n := v.InFlight(); n != 0 {
				t.Errorf("server %s has %d requests in flight", v.ID(), n)
			}
		}
	}
}

// Pod is a scripted HTTP/1.1 endpoint.
type Pod struct {
	Addr     netip.AddrPort
	Conns    []*memnet.Peer
	Requests []string                             // all that are complete
	Answer   func(n int, request string) string   // to the n-th request, from 1 on; empty = silence
	After    func(connection *memnet.Peer, n int) // called when it was answered; nil = nothing
}

// StartPod starts an endpoint at 198.51.100.n:80.
func StartPod(net *memnet.Network, n int, answer func(n int, request string) string) *Pod {
	p := &Pod{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80), Answer: answer}
	net.Accept(p.Addr, p.Accept)
	return p
}

// Accept serves a connection.
func (p *Pod) Accept(peer *memnet.Peer) {
	p.Conns = append(p.Conns, peer)
	var got []byte
	peer.OnData = func(*memnet.Peer) {
		got = append(got, peer.TakeReceived()...)
		for {
			end := requestEnd(got)
			if end == 0 {
				return
			}
			p.Requests = append(p.Requests, string(got[:end]))
			got = got[end:]
			i := len(p.Requests)
			peer.Write([]byte(p.Answer(i, p.Requests[i-1])))
			if p.After != nil {
				p.After(peer, i)
			}
		}
	}
}

// requestEnd is the length of the complete request b starts with, 0 without one.
func requestEnd(b []byte) int {
	i := bytes.Index(b, []byte("\r\n\r\n"))
	if i < 0 {
		return 0
	}
	head, n := string(b[:i+2]), 0
	if _, rest, ok := strings.Cut(head, "content-length: "); ok {
		_, _ = fmt.Sscanf(rest, "%d", &n)
	}
	if strings.Contains(head, "transfer-encoding: chunked") {
		rest := b[i+2:]
		j := bytes.Index(rest, []byte("\r\n0\r\n"))
		if j < 0 {
			return 0
		}
		k := bytes.Index(rest[j+2:], []byte("\r\n\r\n"))
		if k < 0 {
			return 0
		}
		return i + 2 + j + 2 + k + 4
	}
	if len(b) < i+4+n {
		return 0
	}
	return i + 4 + n
}

// OK is an answer of status 200.
func OK(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// Always is the script of a Pod that gives the same answer to all.
func Always(answer string) func(int, string) string {
	return func(int, string) string { return answer }
}
