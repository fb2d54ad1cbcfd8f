package explain

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/routing"
)

// Gateways is what is known of them, see controller.Controller.
type Gateways interface {
	// GatewayPorts are the ports of all, by Gateway and number.
	GatewayPorts() []controller.GatewayPort
	// GatewayOf is the object of a UID.
	GatewayOf(uid string) (*controller.GatewayReport, bool)
	// GatewayReport is an object by its name.
	GatewayReport(kind, namespace, name string) (*controller.GatewayReport, bool)
	// GatewayClaims are the objects that have to do with a host at a Gateway.
	GatewayClaims(of source.Key, host string) []controller.GatewayReport
}

// Protocols of ports of Gateways.
const (
	protocolHTTP = "HTTP"
	protocolTLS  = "TLS"
	protocolTCP  = "TCP"
	protocolUDP  = "UDP"
)

// parsePlace reads NAMESPACE/NAME or NAMESPACE/NAME:PORT.
func parsePlace(text string) (of source.Key, port uint16, err error) {
	name, number, with := strings.Cut(text, ":")
	var ok bool
	of.Namespace, of.Name, ok = strings.Cut(name, "/")
	if ok = ok && of.Namespace != "" && of.Name != "" && !strings.Contains(of.Name, "/"); ok && with {
		var n uint64
		n, err = strconv.ParseUint(number, 10, 16)
		port, ok = uint16(n), err == nil && n > 0
	}
	if !ok {
		return of, 0, fmt.Errorf("the Gateway is %q; allowed: NAMESPACE/NAME or NAMESPACE/NAME:PORT", text)
	}
	return of, port, nil
}

// arrive finds the port that the request comes to: i.port, nil for the ports of OpenShift Routes, or i.nowhere, for which there is none.
func (i *inquiry) arrive() {
	var all []controller.GatewayPort
	if i.x.cfg.Gateways != nil {
		all = i.x.cfg.Gateways.GatewayPorts()
	}
	i.arriveFor(all)
}

// arriveFor is arrive where these are the ports of Gateways.
func (i *inquiry) arriveFor(all []controller.GatewayPort) {
	in, number := i.in, i.usual()
	if in.gateway != (source.Key{}) {
		i.arriveAt(all, in.gateway, number)
		return
	}
	var fitting []*controller.GatewayPort
	for k := range all {
		if p := &all[k]; in.fits(p, number) {
			fitting = append(fitting, p)
		}
	}
	if in.connection() && len(fitting) == 0 {
		i.nowhere = fmt.Sprintf("no Gateway has port %d for %s", number, in.scheme)
		return
	}
	if len(fitting) == 0 {
		return
	}
	best, most := (*controller.GatewayPort)(nil), i.pairRank(number)
	for _, p := range fitting {
		if rank := i.rank(p); rank > most {
			best, most = p, rank
		}
	}
	i.port = best
	i.assumePlace(fitting)
}

// usual is the port that the client connects to.
func (i *inquiry) usual() uint16 {
	switch in := i.in; {
	case in.port != 0:
		return in.port
	case in.secure:
		return 443
	}
	return 80
}

// arriveAt finds a port of a Gateway that is named.
func (i *inquiry) arriveAt(all []controller.GatewayPort, of source.Key, number uint16) {
	if i.x.cfg.Gateways == nil {
		i.nowhere = "Gateways are not served here: see --gateway-api"
		return
	}
	var has []string
	for k := range all {
		p := &all[k]
		if p.Gateway != of {
			continue
		}
		if i.in.gatewayFits(p, number) {
			if i.port = p; p.Closed != "" {
				i.port, i.nowhere = nil, fmt.Sprintf("port %d of Gateway %s is not open: %s", p.Number, of, p.Closed)
			}
			return
		}
		has = append(has, strconv.Itoa(int(p.Number)))
	}
	switch _, there := i.x.cfg.Gateways.GatewayReport(source.Gateway.String(), of.Namespace, of.Name); {
	case len(has) > 0:
		i.nowhere = fmt.Sprintf("Gateway %s has no port %d that is served; it has %s", of, number, strings.Join(has, ", "))
	case there:
		i.nowhere = fmt.Sprintf("no port of Gateway %s is served", of)
	default:
		i.nowhere = fmt.Sprintf("no Gateway %s of a class of this router is known", of)
	}
}

// localPort is the port of this machine that a port of a Gateway is opened at, 0 if it is not.
func localPort(p *controller.GatewayPort) uint16 {
	_, port, err := net.SplitHostPort(p.Local)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint16(n)
}

// gatewayFits reports whether the client may mean a port of the Gateway that it names.
func (r *received) gatewayFits(p *controller.GatewayPort, number uint16) bool {
	return (uint16(p.Number) == number || localPort(p) == number && r.port != 0) && (p.Protocol == protocolUDP) == (r.scheme == schemeUDP)
}

// fits reports whether the client may mean a port: without a port in its URL, only one that speaks what the scheme says.
func (r *received) fits(p *controller.GatewayPort, number uint16) bool {
	switch {
	case p.Closed != "" || !r.gatewayFits(p, number):
		return false
	case r.connection() && !r.secure:
		return p.Protocol == protocolTCP || p.Protocol == protocolUDP
	case r.port != 0:
		return true
	case r.secure:
		return p.Protocol == protocolTLS
	}
	return p.Protocol == protocolHTTP
}

// pairRank says how well the ports of OpenShift Routes are meant, as rank does.
func (i *inquiry) pairRank(number uint16) int {
	if i.in.connection() {
		return -1
	}
	own := i.d.HTTPAddr
	if i.in.secure {
		own = i.d.HTTPSAddr
	}
	_, port, err := net.SplitHostPort(own)
	if i.in.port != 0 && err == nil && port == strconv.Itoa(int(number)) {
		return 3 // this machine has the port once
	}
	if i.in.port != 0 && i.in.port != 80 && i.in.port != 443 {
		return -1 // a Gateway has the port, and nobody says that those of Routes are reached by it
	}
	v := routing.View{Secure: i.in.secure, Host: []byte(i.in.host), Path: []byte("/")}
	rank := 0
	i.table.Candidates(&v, routing.Decision{}, func(routing.Candidate) bool {
		rank = 2
		return false
	})
	return rank
}

// rank says how well a port of a Gateway is meant: 2 for one where some rule has the host, 1 for one where a listener has it, else 0.
func (i *inquiry) rank(p *controller.GatewayPort) int {
	secure := p.Protocol == protocolTLS
	if p.Protocol == protocolTCP || p.Protocol == protocolUDP {
		return 1
	}
	if _, ok := i.table.ListenerFor(p.Name, secure, i.in.host); !ok {
		return 0
	}
	v := routing.View{Secure: secure, Host: []byte(i.in.host), Path: []byte("/"), Arrival: &routing.Arrival{Port: p.Name}}
	rank := 1
	i.table.Candidates(&v, routing.Decision{}, func(c routing.Candidate) bool {
		if c.Lost != routing.LostListener {
			rank = 2
		}
		return rank < 2
	})
	return rank
}

// assumePlace says which port is taken for the one that is meant, where others could be.
func (i *inquiry) assumePlace(fitting []*controller.GatewayPort) {
	others := slices.DeleteFunc(slices.Clone(fitting), func(p *controller.GatewayPort) bool { return p == i.port })
	slices.SortStableFunc(others, func(a, b *controller.GatewayPort) int { return cmp.Compare(i.rank(b), i.rank(a)) })
	var names []string
	for _, p := range others[:min(len(others), mostNamed)] {
		names = append(names, p.Gateway.String())
	}
	switch {
	case i.port != nil && len(names) > 0:
		i.a.Assumed = append(i.a.Assumed, fmt.Sprintf("the client connects to port %d of Gateway %s; --gateway says another one: %s", i.port.Number, i.port.Gateway, strings.Join(names, ", ")))
	case i.port != nil && i.in.port == 0:
		i.a.Assumed = append(i.a.Assumed, fmt.Sprintf("the client connects to port %d of Gateway %s, where the host is served", i.port.Number, i.port.Gateway))
	case i.port == nil:
		i.a.Assumed = append(i.a.Assumed, "the client connects to the ports of Routes; --gateway says that it does to those of a Gateway: "+strings.Join(names, ", "))
	}
}

// gatewayListener says where on a port of a Gateway the request comes to.
func (i *inquiry) gatewayListener() {
	p, l := i.port, &i.a.Listener
	l.Address, l.Gateway, l.Port, l.Protocol, l.Addresses = p.Local, p.Gateway.String(), p.Number, p.Protocol, p.Addresses
	if p.Protocol == protocolTCP || p.Protocol == protocolUDP {
		l.Termination = "endpoint"
	}
}

// listenedBy notes the listener that has the connection or request.
func (i *inquiry) listenedBy(state routing.ListenerState, ok bool) {
	if ok {
		i.a.Listener.Name, i.a.Listener.Hostname = state.Name, state.Hostname
	}
}

// gatewayTrouble are findings about the Gateway itself, its ListenerSets, and the references of the route that won.
func (i *inquiry) gatewayTrouble(add func(reason, format string, args ...any)) {
	if i.odd != "" {
		add(ReasonScheme, "%s", i.odd)
	}
	for _, c := range i.trouble {
		add(ReasonGateway, "%s", c)
	}
}
