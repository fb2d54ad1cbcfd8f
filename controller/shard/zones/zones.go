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
	DNS, Target string // names of the route: the one that it asks for, and the one that it was given; they may be equal, or Target empty
	Router      string
	Serving     bool // DNS may name the Router
}

// BindingOf is what is to be known of o.
func BindingOf(o *api.RouteBinding) Binding {
	return Binding{DNS: o.Spec.DNS, Target: o.Spec.Target, Router: o.Spec.Router, Serving: o.Status.Phase == api.BindingServing && !o.Spec.Leaving}
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

// Make returns the zones of Routers, in the order of their names, and what has none. Bindings are gone through twice. A replica that is silent, which nil says of
// none, has said nothing for too long.
func Make(cfg Config, routers []*api.Router, silent func(router, replica string) bool, bindings iter.Seq[Binding]) ([]Shard, []LeftOut) {
	m := &maker{cfg: cfg, domains: map[string]*domain{}, addresses: map[string][]netip.Addr{}}
	for _, r := range slices.SortedFunc(slices.Values(routers), older) {
		m.addresses[r.Name] = addressesOf(r, silent)
		m.claim(r)
	}
	m.collect(bindings)
	all := slices.SortedFunc(maps.Values(m.domains), func(a, b *domain) int { return strings.Compare(a.router.Name, b.router.Name) })
	var shards []Shard
	for _, d := range all {
		shards = append(shards, Shard{d.router.Name, m.spec(d, all)})
	}
	return shards, m.left
}

// older says which of two Routers with one domain has it.
func older(a, b *api.Router) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// addressesOf are where clients reach a Router: as it says, or its ready replicas. When all of them are silent, it is more likely that nobody
// is heard than that nobody serves.
func addressesOf(r *api.Router, silent func(router, replica string) bool) []netip.Addr {
	texts := r.Spec.Addresses
	if len(texts) == 0 {
		heard := func(s *api.ReplicaStatus) bool { return silent == nil || !silent(r.Name, s.Name) }
		anybody := slices.ContainsFunc(r.Status.Replicas, func(s api.ReplicaStatus) bool { return heard(&s) })
		for i := range r.Status.Replicas {
			if s := &r.Status.Replicas[i]; s.Ready && (heard(s) || !anybody) {
				texts = append(texts, s.Addresses...)
			}
		}
	}
	return parse(texts)
}

// parse returns the addresses that are some, each once.
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

// maker makes zones.
type maker struct {
	cfg       Config
	domains   map[string]*domain
	addresses map[string][]netip.Addr // by Router
	left      []LeftOut
}

// domain is the domain of a Router.
type domain struct {
	name   string // in lower case, without a dot at its end
	router *api.Router
	names  map[string]*served // that do not lead to the Router by themselves
}

// served is a name and the Routers that serve it.
type served struct{ routers []string }

// claim gives a Router its domain, if no older one has it.
func (m *maker) claim(r *api.Router) {
	if r.Spec.DNS == nil {
		return
	}
	name := strings.ToLower(strings.TrimSuffix(r.Spec.DNS.Domain, "."))
	why := ""
	if err := zone.ValidName(name); err != nil {
		why = fmt.Sprintf("spec.dns.domain: %v", err)
	} else if other := m.domains[name]; other != nil {
		why = fmt.Sprintf("router %s is older and has the domain %s too", other.router.Name, name)
	}
	if why != "" {
		m.leave(LeftOut{Router: r.Name, Why: why})
		return
	}
	m.domains[name] = &domain{name: name, router: r, names: map[string]*served{}}
}

// MaxLeftOut is how many names are said to be left out.
const MaxLeftOut = 100

func (m *maker) leave(l LeftOut) {
	if len(m.left) < MaxLeftOut {
		m.left = append(m.left, l)
	}
}

// home returns the domain that a name is in, the innermost, and the number of labels before it.
func (m *maker) home(name string) (*domain, int) {
	for depth := 0; ; depth++ {
		if d := m.domains[name]; d != nil {
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

// collect finds the names that have to be there, and who serves each. A name right below its domain need not be if its Router alone serves
// it; deeper ones always are, because those between would hide them from the wildcard (RFC 4592 section 2.2.2).
func (m *maker) collect(bindings iter.Seq[Binding]) {
	some := false
	for b := range bindings {
		list, n := namesOf(&b)
		for _, name := range list[:n] {
			if d, depth := m.home(name); d != nil && (depth > 1 || d.router.Name != b.Router) && d.names[name] == nil {
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
