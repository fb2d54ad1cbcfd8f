package adversary

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// peaceful are the hosts that bystanders use: their pods keep the rules. The adversary uses those named shared, recycle, few and drop
// as well, and has routes of its own to the addresses behind both.
var peaceful = []string{"own1.test", "own2.test", "shared1.test", "shared2.test", "recycle.test", "few.test", "drop.test", "both1.test", "both2.test"}

// contested are the hosts that the adversary uses.
var contested = []string{"shared1.test", "shared2.test", "recycle.test", "few.test", "drop.test", "evil1.test", "evil2.test", "queue.test", "redirect.test", "none.test"}

// isEvil reports that the pods of a host are the adversary's.
func isEvil(host string) bool { return strings.HasPrefix(host, "evil") }

// endpoint is where the n-th pod of a kind listens.
func endpoint(kind, n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(100 + kind), byte(1 + n)}), 8080)
}

// Kinds of pods.
const (
	ownPod1 = iota
	ownPod2
	sharedPod1
	sharedPod2
	recyclePod
	fewPod
	evilPod1
	evilPod2
	queuePod
	passPod
	evilPassPod
	dropPod
)

const podsOfKind = 3

// startPods starts all pods there may be. Which of them a route has changes.
func (w *world) startPods() {
	kinds := map[int]func(*memnet.Peer){
		ownPod1: w.goodPod1, sharedPod1: w.goodPod1, queuePod: w.goodPod1,
		ownPod2:     func(p *memnet.Peer) { w.goodPod2(p, habits{}) },
		sharedPod2:  func(p *memnet.Peer) { w.goodPod2(p, habits{most: 100}) },
		recyclePod:  func(p *memnet.Peer) { w.goodPod2(p, habits{recycle: 5 + w.n(20)}) },
		fewPod:      func(p *memnet.Peer) { w.goodPod2(p, habits{most: 5}) },
		dropPod:     func(p *memnet.Peer) { w.goodPod2(p, habits{drops: true}) },
		evilPod1:    w.evilPod1,
		evilPod2:    w.evilPod2,
		passPod:     echo,
		evilPassPod: w.evilPass,
	}
	for kind := range len(kinds) {
		for n := range podsOfKind {
			w.net.Accept(endpoint(kind, n), kinds[kind])
		}
	}
	for _, r := range []struct {
		host, namespace string
		kind            int
		protocol        protocol.Protocol
	}{
		{"own1.test", "own", ownPod1, protocol.HTTP1}, {"own2.test", "own", ownPod2, protocol.HTTP2},
		{"shared1.test", "shared", sharedPod1, protocol.HTTP1}, {"shared2.test", "shared", sharedPod2, protocol.HTTP2},
		{"recycle.test", "shared", recyclePod, protocol.HTTP2}, {"few.test", "shared", fewPod, protocol.HTTP2}, {"drop.test", "shared", dropPod, protocol.HTTP2},
		{"both1.test", "own", evilPod1, protocol.HTTP1}, {"both2.test", "own", evilPod2, protocol.HTTP2},
		{"evil1.test", "evil", evilPod1, protocol.HTTP1}, {"evil2.test", "evil", evilPod2, protocol.HTTP2},
		{"queue.test", "evil", queuePod, protocol.HTTP1}, {"redirect.test", "evil", queuePod, protocol.HTTP1},
		{"pass.test", "own", passPod, protocol.HTTP1}, {"evilpass.test", "evil", evilPassPod, protocol.HTTP1},
	} {
		w.addRoute(r.host, r.namespace, r.kind, r.protocol)
	}
}

func (w *world) addRoute(host, namespace string, kind int, protocol protocol.Protocol) {
	spec := &routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: namespace, Name: host, UID: host}, Host: host,
		Balance: oneOf(w, balancer.RoundRobin, balancer.LeastConn, balancer.Random, balancer.Source),
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: 2 * time.Minute, ConnectTimeout: 5 * time.Second},
	}
	for n := range podsOfKind {
		at := endpoint(kind, n)
		spec.Targets = append(spec.Targets, balancer.Target{ID: fmt.Sprintf("ept:%s:%v", host, at), Addr: testaddr.Of(at), Weight: 1, Protocol: protocol})
	}
	switch host {
	case "queue.test":
		spec.Limit = w.some(1, 3)
	case "shared1.test", "shared2.test":
		spec.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 2, Backoff: time.Duration(1+w.n(900)) * time.Millisecond}
	case "redirect.test":
		spec.Termination, spec.Insecure = routing.TermEdge, routing.InsecureRedirect
	case "pass.test", "evilpass.test":
		spec.Termination = routing.TermPassthrough
	case "evil1.test", "evil2.test":
		spec.EjectAfterErrors = w.n(5)
		spec.Policy.Retry = &routing.RetrySpec{Codes: []int{404, 500, 503}, Attempts: w.some(1, 3), Backoff: oneOf(w, 0, time.Duration(w.n(900))*time.Millisecond)}
	}
	w.routes[host] = spec
	w.hosts = append(w.hosts, host)
}

// publish compiles the routes as they are.
func (w *world) publish() {
	var specs []routing.RouteSpec
	for _, host := range w.hosts {
		specs = append(specs, *w.routes[host])
		w.keys[w.routes[host].RouteKey.String()] = true
	}
	w.compile(specs)
}

func (w *world) compile(specs []routing.RouteSpec) {
	table, rejected := routing.Compile(routing.Options{Registry: w.registry}, w.store.Load(), specs)
	if len(rejected) > 0 {
		w.t.Fatalf("rejected: %v", rejected)
	}
	w.store.Publish(table)
	w.registry.Sweep(table.Pools)
}

// change changes the table, again and again: endpoints come and go, routes are deleted and made again.
func (w *world) change() {
	if w.calm {
		return
	}
	host := oneOf(w, w.hosts...)
	spec := w.routes[host]
	targets := append([]balancer.Target(nil), spec.Targets...)
	switch w.n(4) {
	case 0:
		targets[w.n(len(targets))].Weight = w.some(1, 4)
	case 1: // one pod less, or all of them again
		if len(targets) > 1 {
			i := w.n(len(targets))
			targets = append(targets[:i:i], targets[i+1:]...)
			break
		}
		fallthrough
	case 2:
		first := targets[0].Addr.AddrPort().Addr().As4()
		targets = targets[:0]
		for n := range podsOfKind {
			at := endpoint(int(first[2])-100, n)
			targets = append(targets, balancer.Target{ID: fmt.Sprintf("ept:%s:%v", host, at), Addr: testaddr.Of(at), Weight: 1, Protocol: spec.Targets[0].Protocol})
		}
	case 3:
		if spec.Namespace == "evil" {
			w.remake(host)
			return
		}
	}
	spec.Targets = targets
	w.logf("%s now has %d pods", host, len(targets))
	w.publish()
	w.net.After(w.pause(), w.change)
}

// remake deletes a route of the adversary and makes another one of its name a moment later, or troubles its pods.
func (w *world) remake(host string) {
	spec := w.routes[host]
	// No other route has the pods of queue.test.
	if at := oneOf(w, spec.Targets...).Addr.AddrPort(); w.chance(40) && host == "queue.test" {
		w.logf("%v cannot be connected to", at)
		if w.chance(50) {
			w.net.HangDial(at)
		} else {
			w.net.RefuseDial(at, syscall.ECONNREFUSED)
		}
		w.net.After(w.pause(), func() { w.net.AllowDial(at); w.change() })
		return
	}
	w.logf("%s is deleted", host)
	var rest []routing.RouteSpec
	for _, other := range w.hosts {
		if other != host {
			rest = append(rest, *w.routes[other])
		}
	}
	w.compile(rest)
	w.net.After(w.pause(), func() {
		spec.UID = w.token()
		w.publish()
		w.change()
	})
}

// echo is a pod whose connections bring back what they get.
func echo(peer *memnet.Peer) {
	peer.OnData = func(*memnet.Peer) { peer.Write(peer.TakeReceived()) }
	peer.OnEOF = func(*memnet.Peer) { peer.CloseWrite() }
}
