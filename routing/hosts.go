package routing

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"

	"turnout/internal/wire/field"
)

// maxHost is the longest host name that can match, without port and trailing dot
// (RFC 1035 section 2.3.4).
const maxHost = 255

// group is the routes of one host, or of the wildcard routes of one domain. It is
// immutable once its table is complete.
//
// Looking at a group is a cache miss, in a large table several. So the usual group
// has all that is needed in one piece of memory, the bytes of host included.
type group struct {
	host   string // or the domain
	sole   *Route // the only route, if it covers every path; nil = see more
	more   *paths
	tables uint8 // of sole
}

// paths is what there is to know about a group without a sole route.
type paths struct {
	entries     []entry // in the order of compare
	expressions []entry // in the order they are tried in
	special     bool    // a path alone does not decide: see pick
	spaces      []space // of a special group with rules of several namespaces
	tls         hostTLS
}

// hostTLS is the record of a host for TLS connections, before there is a request: all that depends on the server name of
// the ClientHello. Each property is that of one route; nil = no route has it.
type hostTLS struct {
	taker      *Route // takes whole connections
	certified  *Route // has the certificate of the host
	asks       *Route // has the client certificate requirement
	terminates bool   // some route terminates TLS
}

// newGroup returns an open group: one with entries and no sole route.
func newGroup(host string) *group {
	var g *group
	switch n := len(host); {
	case n <= 24:
		v := new(struct {
			group
			name [24]byte
		})
		g, v.host = &v.group, view(v.name[:copy(v.name[:], host)])
	case n <= 56:
		v := new(struct {
			group
			name [56]byte
		})
		g, v.host = &v.group, view(v.name[:copy(v.name[:], host)])
	case n <= 88:
		v := new(struct {
			group
			name [88]byte
		})
		g, v.host = &v.group, view(v.name[:copy(v.name[:], host)])
	default:
		g = &group{host: host}
	}
	g.more = new(paths)
	return g
}

// view returns the bytes, which are never written again, as a string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// reopen returns an open copy of g and the number of its entries. order is the
// place of its sole route in the spec.
func (g *group) reopen(order func(*Route) uint64) (*group, int) {
	c := newGroup(g.host)
	if g.sole != nil {
		c.more.entries = []entry{newEntry(g.sole, order(g.sole))}
	} else {
		c.more.entries, c.more.expressions = slices.Clone(g.more.entries), slices.Clone(g.more.expressions)
	}
	return c, len(c.more.entries)
}

// close completes an open group after entries were added to the end of the sorted ones and
// routes have gone. It returns the number of entries that are left.
func (g *group) close(sorted int, gone map[*Route]struct{}) int {
	m := g.more
	m.takeExpressions(sorted, gone)
	m.entries = arrange(m.entries, sorted, gone)
	if len(m.entries) == 1 && len(m.expressions) == 0 && m.entries[0].path == "" && m.entries[0].tables&special == 0 {
		g.sole, g.tables, g.more = m.entries[0].route, m.entries[0].tables, nil
		return 1
	}
	m.record()
	m.divide()
	return len(m.entries) + len(m.expressions)
}

// record makes the record of the host for TLS.
func (m *paths) record() {
	var taker *entry
	for _, list := range [...][]entry{m.entries, m.expressions} {
		for i := range list {
			e := &list[i]
			r := e.route
			m.special = m.special || e.tables&special != 0
			if e.tables&inSwitch != 0 && (taker == nil || e.compare(*taker) > 0) {
				taker, m.tls.taker = e, r
			}
			if e.tables&inSecure != 0 {
				m.tls.terminates = true
				if r.certificate != nil && (m.tls.certified == nil || r.ranksAbove(m.tls.certified)) {
					m.tls.certified = r
				}
				if r.auth != nil && (m.tls.asks == nil || r.ranksAbove(m.tls.asks)) {
					m.tls.asks = r
				}
			}
		}
	}
}

// tls returns the record of g.
func (g *group) tls() (t hostTLS) {
	if g.sole == nil {
		return g.more.tls
	}
	if g.tables&inSwitch != 0 {
		t.taker = g.sole
	}
	t.terminates = g.tables&inSecure != 0
	if g.sole.certificate != nil {
		t.certified = g.sole
	}
	if t.terminates && g.sole.auth != nil {
		t.asks = g.sole
	}
	return t
}

// has reports whether g contains a route of a namespace.
func (g *group) has(namespace string) bool {
	if g.sole != nil {
		return g.sole.key.Namespace == namespace
	}
	is := func(e entry) bool { return e.route.key.Namespace == namespace }
	return slices.ContainsFunc(g.more.entries, is) || slices.ContainsFunc(g.more.expressions, is)
}

// ranksAbove compares by age where both have one, and otherwise by the text "namespace:name": of several certificates of one
// host that of the oldest, or greatest, is served. Of what several ask clients for, so is that of the same.
func (r *Route) ranksAbove(o *Route) bool {
	if a, b := r.conditions, o.conditions; a.dated() && b.dated() && a.created != b.created {
		return a.created < b.created
	}
	if r.key.Namespace == o.key.Namespace {
		return r.key.Name > o.key.Name
	}
	return r.key.Namespace+":"+r.key.Name > o.key.Namespace+":"+o.key.Name
}

// domain returns the part of a host after its first dot. The bool is false if there
// is no dot.
func domain(host string) (string, bool) {
	_, d, ok := strings.Cut(host, ".")
	return d, ok
}

// hosts finds groups. Those of listeners have names with a tail.
type hosts struct {
	seed  maphash.Seed
	exact cow[group]
	wild  cow[group] // by domain, of hosts with one more label
	deep  cow[group] // by domain, of hosts with one more label or several; the domain of all is ""
}

// hostsEdit is hosts that are being changed.
type hostsEdit struct{ exact, wild, deep *edit[group] }

func freshHosts() hostsEdit {
	return hostsEdit{freshEdit[group](), freshEdit[group](), freshEdit[group]()}
}

func (h *hosts) edit() hostsEdit { return hostsEdit{h.exact.edit(), h.wild.edit(), h.deep.edit()} }

func (e *hostsEdit) result(seed maphash.Seed) hosts {
	return hosts{seed: seed, exact: e.exact.result(), wild: e.wild.result(), deep: e.deep.result()}
}

// index returns where the group of r is, and under which name.
func (e *hostsEdit) index(r *Route) (*edit[group], string) {
	d, ok := domain(r.host)
	switch {
	case r.wildcard && r.labels:
		return e.deep, d
	case r.wildcard && ok:
		return e.wild, d
	}
	return e.exact, r.host
}

// find returns the group of a host in lower case, nil if there is none.
func (h *hosts) find(host []byte) *group {
	return findGroup(&h.exact, maphash.Bytes(h.seed, host), host)
}

// findWild returns the group of wildcard routes that cover a host in lower case,
// nil if there is none.
func (h *hosts) findWild(host []byte) *group {
	if h.wild.count == 0 {
		return nil
	}
	dot := bytes.IndexByte(host, '.')
	if dot < 0 || bytes.IndexByte(host[:dot], ':') >= 0 {
		return nil
	}
	domain := host[dot+1:]
	return findGroup(&h.wild, maphash.Bytes(h.seed, domain), domain)
}

// above returns a name without its first label, and at last without all of them; the last tail bytes are no part of it. False:
// there is nothing to take off.
func above(name []byte, tail int) ([]byte, bool) {
	end := len(name) - tail
	switch i := bytes.IndexByte(name[:end], '.'); {
	case i >= 0:
		return name[i+1:], true
	case end > 0:
		return name[end:], true
	}
	return nil, false
}

// findDeep returns the group of the rules for a domain and all hosts below it, nil if there is none.
func (h *hosts) findDeep(domain []byte) *group {
	return findGroup(&h.deep, maphash.Bytes(h.seed, domain), domain)
}

// findGroup is cow.get without a function call for each comparison.
func findGroup(c *cow[group], hash uint64, host []byte) *group {
	slots := c.at(c.place(hash)).slots
	for i := hash; ; i++ {
		s := &slots[i%bucketSlots]
		if s.item == nil {
			return nil
		}
		if s.hash == hash && s.item.host == string(host) {
			return s.item
		}
	}
}

// bare returns a host as received without port and trailing dot. The bool is false
// when it cannot match any route: no name, a colon without digits, more than one
// trailing dot, longer than a name may be.
func bare(host []byte) ([]byte, bool) {
	end := len(host)
	i := end
	for i > 0 && host[i-1]-'0' <= 9 {
		i--
	}
	if i > 0 && host[i-1] == ':' {
		if i == end {
			return nil, false
		}
		end = i - 1
	}
	if end > 0 && host[end-1] == '.' {
		end--
	}
	if end == 0 || end > maxHost || host[end-1] == '.' {
		return nil, false
	}
	return host[:end], true
}

// hasUpper reports whether b has an ASCII upper-case letter.
func hasUpper(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if field.UpperBits(binary.LittleEndian.Uint64(b)) != 0 {
			return true
		}
	}
	for _, c := range b {
		if c-'A' < 26 {
			return true
		}
	}
	return false
}

// lower writes b in lower case to dst, which is as long.
func lower(dst, b []byte) {
	for i, c := range b {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
}
