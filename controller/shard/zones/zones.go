package zones

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"turnout/controller/shard/api"
	"turnout/internal/dns/zone"
)

// Config is what all zones have in common. Times are in seconds.
type Config struct {
	Servers                []zone.Server // of domains whose Router names none
	Mailbox                string        // "" = hostmaster in each domain
	NegativeTTL, ServerTTL uint32
	Refresh, Retry, Expire uint32
}

// DefaultTTL is that of a Router that does not say.
const DefaultTTL = 30

// Binding is what is to be known of a RouteBinding.
type Binding struct {
	DNS, Target string // names of the route: the one that it asks for, and the one that it was given; Target is empty if they are equal or there is none
	Router      string
	Serving     bool // DNS may name the Router
}

// BindingOf is what is to be known of o.
func BindingOf(o *api.RouteBinding) Binding {
	target := o.Spec.Target
	if target == o.Spec.DNS {
		target = "" // once is enough
	}
	return Binding{DNS: o.Spec.DNS, Target: target, Router: o.Spec.Router, Serving: o.Status.Phase == api.BindingServing && !o.Spec.Leaving}
}

// Router is what is to be known of a Router.
type Router struct {
	Name      string
	Created   int64  // seconds since 1970: of two with one domain the older has it
	Domain    string // "" = none; in lower case, without a dot at its end
	TTL       uint32 // in seconds
	Servers   []zone.Server
	Addresses []netip.Addr // where clients reach it, each once and in order
}

// RouterOf is what is to be known of o. A replica that is silent, which nil says of none, has said nothing for too long: it is not where clients go, unless
// all are, because then it is more likely that nobody is heard than that nobody serves.
func RouterOf(o *api.Router, silent func(replica string) bool) Router {
	r := Router{Name: o.Name, Created: o.CreationTimestamp.Unix(), Addresses: addressesOf(o, silent)}
	if dns := o.Spec.DNS; dns != nil {
		r.Domain, r.TTL = strings.ToLower(strings.TrimSuffix(dns.Domain, ".")), DefaultTTL
		if dns.TTLSeconds > 0 {
			r.TTL = uint32(dns.TTLSeconds)
		}
		for _, s := range dns.NameServers {
			r.Servers = append(r.Servers, zone.Server{Name: s.Name, Addresses: parse(s.Addresses)})
		}
	}
	return r
}

// Equal reports whether two are the same.
func (r *Router) Equal(other *Router) bool {
	same := func(a, b zone.Server) bool { return a.Name == b.Name && slices.Equal(a.Addresses, b.Addresses) }
	return r.Name == other.Name && r.Created == other.Created && r.Domain == other.Domain && r.TTL == other.TTL &&
		slices.EqualFunc(r.Servers, other.Servers, same) && slices.Equal(r.Addresses, other.Addresses)
}

// addressesOf are where clients reach a Router: as it says, or its ready replicas.
func addressesOf(o *api.Router, silent func(replica string) bool) []netip.Addr {
	texts := o.Spec.Addresses
	if len(texts) == 0 {
		heard := func(s *api.ReplicaStatus) bool { return silent == nil || !silent(s.Name) }
		anybody := slices.ContainsFunc(o.Status.Replicas, func(s api.ReplicaStatus) bool { return heard(&s) })
		for i := range o.Status.Replicas {
			if s := &o.Status.Replicas[i]; s.Ready && (heard(s) || !anybody) {
				texts = append(texts, s.Addresses...)
			}
		}
	}
	return parse(texts)
}

// parse returns the addresses that are some, each once and in order.
func parse(texts []string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a.Unmap().WithZone(""))
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// Shard is the zone of a Router.
type Shard struct {
	Router string
	Spec   zone.Spec
}

// LeftOut is a Router without a zone, or a name that is not there.
type LeftOut struct {
	Router string
	Name   string // "" = the whole zone
	Why    string
}

func (l LeftOut) String() string {
	if l.Name == "" {
		return fmt.Sprintf("router %s has no zone: %s", l.Router, l.Why)
	}
	return fmt.Sprintf("router %s serves %s, which leads elsewhere: %s", l.Router, l.Name, l.Why)
}

// Names is which names there are. It is made by Make and never changes.
type Names struct {
	Shards  []Shard   // in the order of Routers' names
	LeftOut []LeftOut // MaxLeftOut at most

	domains map[string]*domain
}

// Make says which names there are. Bindings are gone through twice.
func Make(cfg Config, routers []Router, bindings iter.Seq[Binding]) *Names {
	m := &maker{Names: Names{domains: map[string]*domain{}}, cfg: cfg, addresses: map[string][]netip.Addr{}}
	routers = slices.SortedFunc(slices.Values(routers), older)
	for i := range routers {
		m.addresses[routers[i].Name] = routers[i].Addresses
		m.claim(&routers[i])
	}
	m.collect(bindings)
	all := slices.SortedFunc(maps.Values(m.domains), func(a, b *domain) int { return strings.Compare(a.router.Name, b.router.Name) })
	for _, d := range all {
		m.Shards = append(m.Shards, Shard{d.router.Name, m.spec(d, all)})
	}
	return &m.Names
}

// older says which of two Routers with one domain has it.
func older(a, b Router) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
}

// maker makes Names.
type maker struct {
	Names

	cfg       Config
	addresses map[string][]netip.Addr // by Router
}

// domain is the domain of a Router.
type domain struct {
	name   string
	router *Router
	names  map[string]*served // that do not lead to the Router by themselves
}

// served is a name and the Routers that serve it.
type served struct{ routers []string }

// claim gives a Router its domain, if no older one has it.
func (m *maker) claim(r *Router) {
	if r.Domain == "" {
		return
	}
	why := ""
	if err := zone.ValidName(r.Domain); err != nil {
		why = fmt.Sprintf("spec.dns.domain: %v", err)
	} else if other := m.domains[r.Domain]; other != nil {
		why = fmt.Sprintf("router %s is older and has the domain %s too", other.router.Name, r.Domain)
	}
	if why != "" {
		m.leave(LeftOut{Router: r.Name, Why: why})
		return
	}
	m.domains[r.Domain] = &domain{name: r.Domain, router: r, names: map[string]*served{}}
}

// MaxLeftOut is how many names and Routers are said to be left out.
const MaxLeftOut = 100

func (m *maker) leave(l LeftOut) {
	if len(m.LeftOut) < MaxLeftOut {
		m.LeftOut = append(m.LeftOut, l)
	}
}

// home returns the domain that a name is in, the innermost, and the number of labels before it.
func (n *Names) home(name string) (*domain, int) {
	for depth := 0; ; depth++ {
		if d := n.domains[name]; d != nil {
			return d, depth
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return nil, 0
		}
		name = rest
	}
}

// namesOf are the names of a binding that serves, each once.
func namesOf(b *Binding) (list [2]string, n int) {
	if !b.Serving {
		return list, 0
	}
	for _, name := range [...]string{b.DNS, b.Target} {
		if name != "" && (n == 0 || name != list[0]) {
			list[n] = name
			n++
		}
	}
	return list, n
}

// elsewhere reports whether a name in a domain has to be there because of a Router that serves it. A name right below its domain need not be if its
// Router alone serves it; deeper ones always are, because those between would hide them from the wildcard (RFC 4592 section 2.2.2).
func (d *domain) elsewhere(depth int, router string) bool {
	return depth > 1 || d.router.Name != router
}

// Affects reports whether there would be other names if b came or went. If not, there is no need to make them again.
func (n *Names) Affects(b Binding) bool {
	list, count := namesOf(&b)
	for _, name := range list[:count] {
		if d, depth := n.home(name); d != nil && (d.elsewhere(depth, b.Router) || d.names[name] != nil) {
			return true
		}
	}
	return false
}

// collect finds the names that have to be there, and who serves each.
func (m *maker) collect(bindings iter.Seq[Binding]) {
	some := false
	for b := range bindings {
		list, n := namesOf(&b)
		for _, name := range list[:n] {
			if d, depth := m.home(name); d != nil && d.elsewhere(depth, b.Router) && d.names[name] == nil {
				d.names[name] = &served{}
				some = true
			}
		}
	}
	if !some {
		return
	}
	for b := range bindings {
		list, n := namesOf(&b)
		for _, name := range list[:n] {
			if d, _ := m.home(name); d != nil && d.names[name] != nil && !slices.Contains(d.names[name].routers, b.Router) {
				d.names[name].routers = append(d.names[name].routers, b.Router)
			}
		}
	}
}
