package routing

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"
)

// ListenerSpec is a place where requests come in besides the pair of ports that OpenShift Routes are served on, as plain data: connections
// to one port for the host names it is there for. It leads to hosts of its own, those of the rules that name it, and to nobody
// else's. Of several listeners of one port the one with the most specific host name gets a request, and no other.
type ListenerSpec struct {
	Name     string // its identity, such as "namespace/gateway/section"; RuleSpec.Listener names it
	Port     string // that its connections come in by, see Arrival; not ""
	Hostname string // lower case; "" = any, "*.example.com" = any with one more label or several
	TLS      bool   // connections begin with TLS
	// Stream says that bytes go on as they come, by rules with TermPassthrough or TermStream: without a Hostname and TLS, all that come in by the port.
	// Connections that no rule takes are closed without a byte.
	Stream       bool
	Certificates []*CertificateSpec // with TLS, for hosts whose rules have none: the one for the server name, else the first
	ClientAuth   *ClientAuthSpec    // with TLS, for hosts whose rules have none; nil = as the router is configured
}

// Arrival says how a connection came in. nil is the pair of ports of OpenShift Routes, and clients that were asked what all are.
type Arrival struct {
	Port     string      // of a ListenerSpec; "" = one of the pair
	Listener string      // that the server name of the ClientHello led to; "" without TLS, and on the pair
	Auth     *ClientAuth // what the client was asked for; nil = what the router is configured with
}

// ReasonListener is the reason of a Rejection for a listener that cannot be there.
const ReasonListener = "InvalidListener"

// listener is a ListenerSpec, compiled.
type listener struct {
	name, port, hostname string
	secure               bool
	tail                 string
	certificates         []*certificate
	auth                 *ClientAuth
	stream               bool
	arrival              *Arrival // of its connections where no host asks clients for something else
}

// listenerUse is the name of a listener that a table knows, and how many rules there are for it. It is immutable.
type listenerUse struct {
	name     string
	tail     string
	listener *listener // nil = there are only rules yet
	rules    int
}

// port is the listeners of one, by host name: "" for any, ".example.com" for a wildcard.
type port map[string]*listener

// tailSize is the length of what stands behind host names in the index of hosts of listeners, so that one index has them all.
const tailSize = 6

// tailOf makes the tail of the listener with a number. It has no dot and no colon.
func tailOf(n uint64) string {
	var tail [tailSize]byte
	for i := range tail {
		tail[i] = 0x80 | byte(n>>(7*i)&0x7f)
	}
	return string(tail[:])
}

// hostnameKey is the place of a host name among those of a port.
func hostnameKey(hostname string) string { return strings.TrimPrefix(hostname, "*") }

// find returns the listener for a host name in lower case, nil if there is none.
func (p port) find(name []byte) *listener { return mostSpecific(p, name) }

// mostSpecific returns what a name leads to: it itself, else the wildcard with most labels, else "".
func mostSpecific[V any](names map[string]*V, name []byte) *V {
	if v := names[string(name)]; v != nil {
		return v
	}
	for rest := name; len(rest) > 0; {
		i := bytes.IndexByte(rest, '.')
		if i < 0 {
			break
		}
		if v := names[string(rest[i:])]; v != nil {
			return v
		}
		rest = rest[i+1:]
	}
	return names[""]
}

// silent reports that a connection for which there is no listener is closed without a byte: there are streams among those there are.
func (p port) silent() bool {
	for _, l := range p {
		if l.stream {
			return true
		}
	}
	return false
}

// certificate returns the one for a host name in lower case, nil if the listener has none.
func (l *listener) certificate(name []byte) *certificate {
	for _, c := range l.certificates {
		if _, ok := c.names()[string(name)]; ok {
			return c
		}
	}
	if i := bytes.IndexByte(name, '.'); i >= 0 {
		for _, c := range l.certificates {
			if _, ok := c.names()[string(name[i:])]; ok {
				return c
			}
		}
	}
	if len(l.certificates) == 0 {
		return nil
	}
	return l.certificates[0]
}

// listener returns that of a port for a host name in lower case, nil if there is none.
func (t *Table) listener(port string, secure bool, name []byte) *listener {
	if l := t.ports[port].find(name); l != nil && l.secure == secure {
		return l
	}
	return nil
}

// ApplyListeners makes the table that follows t: without the listeners of deletes, then with those of upserts added or replaced, in any order: some
// may take the places that others leave. A
// Rejection has the listener's name as that of its key. Rules may be there before their listener, and stay when it goes: they are
// served while it is there. t is unchanged.
func (t *Table) ApplyListeners(upserts []ListenerSpec, deletes []string) (*Table, []Rejection) {
	b := t.builder()
	b.ports = maps.Clone(b.ports)
	for _, name := range deletes {
		b.deleteListener(name)
	}
	for i := range upserts {
		if l := b.listenerUse(upserts[i].Name).listener; l != nil && (l.port != upserts[i].Port || l.hostname != upserts[i].Hostname) {
			b.deleteListener(upserts[i].Name)
		}
	}
	var rejections []Rejection
	for i := range upserts {
		if err := b.upsertListener(&upserts[i]); err != nil {
			b.deleteListener(upserts[i].Name)
			rejections = append(rejections, Rejection{Key: RouteKey{Name: upserts[i].Name}, Reason: ReasonListener, Message: err.Error()})
		}
	}
	return b.table(), rejections
}

// upsertListener puts a listener in the place of the one of its name.
func (b *builder) upsertListener(s *ListenerSpec) error {
	if s.Name == "" || s.Port == "" {
		return fmt.Errorf("cannot make listener %q of port %q: it has no name or no port", s.Name, s.Port)
	}
	if !s.TLS && (len(s.Certificates) > 0 || s.ClientAuth != nil) {
		return fmt.Errorf("cannot make listener %s: certificates are for listeners with TLS", s.Name)
	}
	if s.Stream && !s.TLS && s.Hostname != "" {
		return fmt.Errorf("cannot make listener %s: without TLS nobody says which host name is meant", s.Name)
	}
	l := &listener{name: s.Name, port: s.Port, hostname: s.Hostname, secure: s.TLS, stream: s.Stream}
	for _, spec := range s.Certificates {
		c, err := b.certificate(spec, nil)
		if err != nil {
			return fmt.Errorf("cannot make listener %s: %w", s.Name, err)
		}
		c.names() // computed here, so that no handshake has to
		l.certificates = append(l.certificates, c)
	}
	var err error
	if l.auth, err = b.clientAuth(s.ClientAuth, nil); err != nil {
		return fmt.Errorf("cannot make listener %s: %w", s.Name, err)
	}
	key := hostnameKey(s.Hostname)
	if there := b.ports[s.Port][key]; there != nil && there.name != s.Name {
		return fmt.Errorf("cannot make listener %s: %s has host name %q of port %s", s.Name, there.name, s.Hostname, s.Port)
	}
	b.deleteListener(s.Name)
	u := b.listenerUse(s.Name)
	l.tail = u.tail
	l.arrival = &Arrival{Port: l.port, Listener: l.name, Auth: l.auth}
	u.listener = l
	b.putListenerUse(u)
	b.useListener(l, 1)
	p := b.ownPort(l.port)
	p[key] = l
	b.setPort(l.port, p)
	return nil
}

// deleteListener takes a listener out of the table. Rules that name it stay.
func (b *builder) deleteListener(name string) {
	u := b.listenerUse(name)
	l := u.listener
	if l == nil {
		return
	}
	u.listener = nil
	b.putListenerUse(u)
	b.useListener(l, -1)
	p := b.ownPort(l.port)
	delete(p, hostnameKey(l.hostname))
	b.setPort(l.port, p)
}

// ownPort returns the listeners of a port for changes. It copies them once, however many of them
// change.
func (b *builder) ownPort(name string) port {
	p, ok := b.ownPorts[name]
	if !ok {
		if p = maps.Clone(b.ports[name]); p == nil {
			p = port{}
		}
		if b.ownPorts == nil {
			b.ownPorts = make(map[string]port)
		}
		b.ownPorts[name] = p
	}
	return p
}

// setPort puts the listeners of a port into the table, which has ports of its own by then.
func (b *builder) setPort(name string, p port) {
	if b.ports == nil {
		b.ports = make(map[string]port)
	}
	if b.ports[name] = p; len(p) == 0 {
		delete(b.ports, name)
	}
}

// useListener counts n more users of what l has.
func (b *builder) useListener(l *listener, n int) {
	for _, c := range l.certificates {
		countContent(b.certs, c.sum, c, n)
	}
	if l.auth != nil {
		countContent(b.auths, l.auth.sum, l.auth, n)
	}
}

// listenerOf returns the listener of a name, nil if there is none.
func (t *Table) listenerOf(name string) *listener {
	if t.listeners.count == 0 {
		return nil
	}
	if u := t.listeners.findItem(maphash.String(t.hosts.seed, name), func(u *listenerUse) bool { return u.name == name }); u != nil {
		return u.listener
	}
	return nil
}

// listenerUse returns what is known of a name, or a new number for it.
func (b *builder) listenerUse(name string) listenerUse {
	if u := b.listeners.findItem(maphash.String(b.seed, name), func(u *listenerUse) bool { return u.name == name }); u != nil {
		return *u
	}
	return listenerUse{name: name, tail: tailOf(b.numbers)}
}

// putListenerUse keeps u, unless nobody uses it any more.
func (b *builder) putListenerUse(u listenerUse) {
	same := func(o *listenerUse) bool { return o.name == u.name }
	hash := maphash.String(b.seed, u.name)
	if u.listener == nil && u.rules == 0 {
		b.listeners.remove(hash, same)
		return
	}
	if u.tail == tailOf(b.numbers) {
		b.numbers++
	}
	b.listeners.putItem(hash, &u, same)
}

// countRules counts n more rules of a listener.
func (b *builder) countRules(listener string, n int) {
	u := b.listenerUse(listener)
	u.rules += n
	b.putListenerUse(u)
}
