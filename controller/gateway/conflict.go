package gateway

import (
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxListeners bounds the listeners of one Gateway with those of its ListenerSets. A set's beyond it are not accepted.
const maxListeners = 8192

// place is what may have one listener at most.
type place struct {
	port string
	host string
}

// conflicts says which listeners are in the way of others. Within the Gateway all that are involved lose; a listener of a set loses to what comes
// before it.
func (g *gateway) conflicts() {
	kinds := make(map[string]PortKind) // of ports, by the first listener
	taken := make(map[place]*listener) // by the first listener
	count := 0
	for _, l := range g.listeners {
		count++
		if l.unknown() {
			continue
		}
		if _, there := kinds[l.port]; !there {
			kinds[l.port] = l.kind
		}
	}
	mixed := make(map[string]bool)
	for _, l := range g.listeners {
		if !l.unknown() && l.kind != kinds[l.port] {
			mixed[l.port] = true
		}
	}
	for _, l := range g.listeners {
		if l.unknown() {
			continue
		}
		at := place{l.port, l.host}
		other := taken[at]
		switch {
		case mixed[l.port]:
			l.conflicted(gatewayv1.ListenerReasonProtocolConflict, fmt.Sprintf("Listeners of port %d have protocols that cannot share it", l.spec.Port))
		case other != nil:
			l.collides(other)
			other.collides(l)
			continue
		}
		taken[at] = l
	}
	for _, s := range g.sets {
		for _, l := range s.listeners {
			if count++; count > maxListeners {
				l.reject(string(gatewayv1.ListenerEntryReasonTooManyListeners), fmt.Sprintf("The Gateway and its ListenerSets have more than %d listeners", maxListeners))
				continue
			}
			l.enter(kinds, taken)
		}
	}
}

// enter gives a listener of a set its place, if it is free.
func (l *listener) enter(kinds map[string]PortKind, taken map[place]*listener) {
	if l.unknown() {
		return
	}
	if kind, there := kinds[l.port]; there && kind != l.kind {
		l.conflicted(gatewayv1.ListenerReasonProtocolConflict, fmt.Sprintf("Port %d has a listener with a protocol that cannot share it", l.spec.Port))
		return
	}
	at := place{l.port, l.host}
	if other := taken[at]; other != nil {
		l.collides(other)
		return
	}
	kinds[l.port], taken[at] = l.kind, l
}

// unknown reports that the listener has a protocol that is none, and so no place.
func (l *listener) unknown() bool { return len(kindsOf[l.spec.Protocol]) == 0 }

// collides says that another listener has the same place. Listeners that have a port to themselves differ in nothing else.
func (l *listener) collides(other *listener) {
	reason := gatewayv1.ListenerReasonHostnameConflict
	if l.kind == PortTCP || l.kind == PortUDP {
		reason = gatewayv1.ListenerReasonProtocolConflict
	}
	l.conflicted(reason, fmt.Sprintf("Listener %s of %s has the same port and host name", other.spec.Name, other.owner))
}

func (l *listener) conflicted(reason gatewayv1.ListenerConditionReason, message string) {
	if l.conflict == "" {
		l.conflict, l.message = string(reason), message
	}
}

// String returns "Kind namespace/name".
func (r Ref) String() string { return r.Kind + " " + r.Key.String() }

// overlap is what is said of listeners whose host names overlap.
const overlap = "Another listener of the port has host names in common with this one: requests for one of them on a connection for the other are answered 421"

// overlaps finds listeners of one port with TLS whose host names have names in common: a client that has a connection for one of them may send
// requests for the other on it (RFC 9113 section 9.1.1), which are answered 421.
func (g *gateway) overlaps() {
	by := make(map[place]*listener)
	for l := range g.all {
		if l.terminates() && l.usable() {
			by[place{l.port, l.host}] = l
		}
	}
	if len(by) < 2 {
		return
	}
	for at, l := range by {
		for rest := strings.TrimPrefix(at.host, "*."); rest != ""; {
			_, above, _ := strings.Cut(rest, ".")
			wider := "*." + above
			if above == "" {
				wider = ""
			}
			if other := by[place{at.port, wider}]; other != nil && other != l {
				l.overlaps, other.overlaps = true, true
			}
			rest = above
		}
	}
}
