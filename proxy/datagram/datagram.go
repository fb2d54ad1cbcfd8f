// Package datagram relays UDP. The datagrams of one client go to one endpoint of the rule that has the port, by a socket of their own, so
// that the endpoint tells clients apart; what it sends there goes back. Who the client is, its address, its port and those it sends to, makes
// a session. It begins with a datagram, is accounted for as a connection that is passed through (proxy.Relay), and ends when both are silent,
// when the table would not choose its endpoint any more, or when too many others are more alive. Nothing is kept: what cannot be sent at once, or has no
// endpoint, is dropped.
//
// After its session has begun a datagram costs no allocation, and a share of two system calls.
package datagram

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/internal/share"
	"turnout/proxy"
	"turnout/routing"
)

// Config is what Sessions need; Loop, Worker and Store are required.
type Config struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
	Store  *routing.Store
	Idle   time.Duration // silence in both directions that ends a session; 0 = a minute
	// Most is the number of sessions of the loop, shared by namespaces. When a namespace has used
	// its share, each new session ends its longest silent session. 0 = 4096.
	Most int
}

const (
	defaultIdle = time.Minute
	defaultMost = 4096

	// lookAgain is how long a session may go on without a look at the table and the servers.
	lookAgain = time.Second
	// drainIdle is Config.Idle when the process stops: an answer that is under way still gets back.
	drainIdle = time.Second
)

// Stats counts. Any goroutine may read it.
type Stats struct {
	Sessions atomic.Int64         // open
	Begun    atomic.Uint64        // since the start
	In, Out  atomic.Uint64        // datagrams sent to endpoints, and to clients
	Dropped  [Drops]atomic.Uint64 // datagrams that went nowhere, by Drop
}

// Drop is why a datagram went nowhere.
type Drop int

// The reasons.
const (
	DropNoRoute Drop = iota // no rule has the port
	DropRefused             // the rule has no endpoint for the client, or does not let it in
	DropUnsent              // the system did not take it
	Drops
)

// String is the word of the metric.
func (d Drop) String() string { return [...]string{"no-route", "refused", "unsent"}[d] }

// Sessions are those of one loop. All methods but Stats are called on it.
type Sessions struct {
	cfg    Config
	byKey  map[key]*session
	all    list.List[session]             // the longest silent first
	owned  map[string]*list.List[session] // those of each namespace, in the same order
	places share.Pool
	silent *reactor.Backlog // ends sessions that were silent for too long
	timer  *reactor.Timer   // runs silent
	stats  Stats
}

// key is who a session is for.
type key struct {
	socket *reactor.DatagramSocket // that the client's datagrams came in by
	client netip.AddrPort
	local  netip.Addr // that they were sent to, if the socket is for several
}

// New makes Sessions, of which there are none yet.
func New(cfg Config) (*Sessions, error) {
	if cfg.Loop == nil || cfg.Worker == nil || cfg.Store == nil {
		return nil, errors.New("cannot relay datagrams: Loop, Worker and Store are required")
	}
	if cfg.Idle <= 0 {
		cfg.Idle = defaultIdle
	}
	if cfg.Most <= 0 {
		cfg.Most = defaultMost
	}
	ss := &Sessions{cfg: cfg, byKey: make(map[key]*session), owned: make(map[string]*list.List[session]), places: share.NewPool(cfg.Most)}
	ss.silent = cfg.Loop.NewBacklog(ss.expireNext)
	ss.timer = cfg.Loop.NewRecoveringTimer(ss.silent.Run)
	return ss, nil
}

// Stats are the counters, which go on changing.
func (ss *Sessions) Stats() *Stats { return &ss.stats }

// Received relays datagrams that came to a socket of the port with a name.
func (ss *Sessions) Received(port string, socket *reactor.DatagramSocket, all []reactor.Datagram) {
	table := ss.cfg.Store.Load()
	for begin := 0; begin < len(all); {
		s, n := ss.run(port, socket, all[begin:], table)
		run := all[begin : begin+n]
		begin += n
		switch {
		case s == nil:
			ss.drop(DropNoRoute, n)
		case !s.joined:
			ss.drop(DropRefused, n)
		default:
			s.send(run)
		}
	}
}

// run returns the session of the first datagram, nil if there is none, and how many in a row are of the same client.
func (ss *Sessions) run(port string, socket *reactor.DatagramSocket, all []reactor.Datagram, table *routing.Table) (*session, int) {
	k := key{socket, all[0].Peer, all[0].Local}
	n := 1
	for n < len(all) && all[n].Peer == k.client && all[n].Local == k.local {
		n++
	}
	s := ss.byKey[k]
	if s != nil && !s.stands(port, table) {
		s.end()
		s = nil
	}
	if s == nil {
		s = ss.begin(port, k, all[0].TTL, table)
	}
	return s, n
}

func (ss *Sessions) drop(why Drop, n int) { ss.stats.Dropped[why].Add(uint64(n)) }

// begin begins a session, nil if no rule has the port.
func (ss *Sessions) begin(port string, k key, ttl uint8, table *routing.Table) *session {
	r := table.Stream(port)
	if r == nil {
		return nil
	}
	owner := r.Namespace()
	if !ss.makePlace(owner) {
		return nil
	}
	local := k.socket.Addr()
	if k.local.IsValid() {
		local = netip.AddrPortFrom(k.local, local.Port())
	}
	s := &session{ss: ss, owner: owner, key: k, port: port, generation: table.Generation(), looked: ss.cfg.Loop.Now()}
	ss.add(s)
	s.relay = ss.cfg.Worker.Relay(s, r, proxy.Client{Addr: k.client, Local: local, TTL: ttl})
	if s.relay.Admit() {
		s.within = true
		s.relay.Connect()
		s.settle()
		s.within = false
	}
	return s
}

// add registers a session, for which makePlace has taken a place.
func (ss *Sessions) add(s *session) {
	ss.byKey[s.key] = s
	if ss.owned[s.owner] == nil {
		ss.owned[s.owner] = new(list.List[session])
	}
	s.touch()
	ss.stats.Sessions.Add(1)
	ss.stats.Begun.Add(1)
}

// makePlace takes a place for a session of a namespace. If the share of the namespace is used up,
// it ends the longest silent session of the namespace. If the namespace has no session, it ends the
// longest silent session of all.
func (ss *Sessions) makePlace(owner string) bool {
	for !ss.places.Take(owner, 1) {
		ss.cfg.Worker.Reached(bound.DatagramSessions)
		oldest := ss.all.First()
		if own := ss.owned[owner]; own != nil {
			oldest = own.First()
		}
		if oldest == nil {
			return false
		}
		oldest.end()
	}
	return true
}

// EndPort ends the sessions of a port, whose socket is closed, in bursts.
func (ss *Sessions) EndPort(port string) {
	var all []*session
	for s := ss.all.First(); s != nil; s = s.node.Next() {
		if s.port == port {
			all = append(all, s)
		}
	}
	reactor.InBursts(ss.cfg.Loop, all, (*session).end)
}

// Drain ends sessions as soon as they are silent for a moment.
func (ss *Sessions) Drain() {
	ss.cfg.Idle = min(ss.cfg.Idle, drainIdle)
	ss.silent.Run()
}

// expireNext ends the session that was silent for longest, if that was too long. Otherwise it sets
// the timer.
func (ss *Sessions) expireNext() (more bool) {
	s := ss.all.First()
	if s == nil {
		return false
	}
	if left := ss.cfg.Idle - time.Duration(ss.cfg.Loop.Now()-s.last); left > 0 {
		ss.timer.Reset(left)
		return false
	}
	s.end()
	return true
}

// refused says that nobody receives what is sent to an endpoint.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
