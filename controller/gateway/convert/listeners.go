package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// Limits of the Gateway API.
const (
	maxListeners = 64 // of a Gateway, and of a ListenerSet
	maxParents   = 32 // of a route
	maxRules     = 16 // of an HTTPRoute
	maxGrants    = 16 // objects that a ReferenceGrant names
	maxHeaders   = 16 // of a list of a header filter
)

// section is a listener that is made.
type section struct {
	name        gatewayv1.SectionName
	host        string // "" = all that no other listener is for
	secure      bool   // it has TLS
	passthrough bool
	certificate source.Key      // not with passthrough
	namespaces  map[string]bool // of the routes that attach
	set         string          // the ListenerSet that it is part of; "" = it is one of the Gateway
}

// frontend is where routes attach.
type frontend struct {
	plain  *section            // nil = nobody is served without TLS
	secure map[string]*section // by host
	all    []*section          // the order of the Gateway
}

// listen makes the listeners.
func (c *conversion) listen() {
	f := &c.frontend
	f.secure = make(map[string]*section)
	names := make(map[gatewayv1.SectionName]bool)
	open := func(s *section, wanted string) *section {
		s.name = gatewayv1.SectionName(shortened(wanted, maxName))
		for n := 2; names[s.name]; n++ {
			s.name = gatewayv1.SectionName(shortened(wanted, maxName-4) + fmt.Sprintf("-%d", n))
		}
		names[s.name] = true
		s.namespaces = make(map[string]bool)
		f.all = append(f.all, s)
		return s
	}
	owners := c.owners()
	for _, g := range c.groups {
		if f.plain == nil && (g.plain() || g.redirects()) {
			f.plain = open(&section{}, "http")
		}
	}
	var rest []string // hosts that may do with the listener for all others
	for _, host := range slices.Sorted(maps.Keys(owners)) {
		switch owner := owners[host]; {
		case owner.passes():
			f.secure[host] = open(&section{host: host, secure: true, passthrough: true}, "tls-"+spelled(host))
		case host != "" && c.own(owner) != (source.Key{}):
			f.secure[host] = open(&section{host: host, secure: true, certificate: c.certificate(owner)}, "https-"+spelled(host))
		default:
			rest = append(rest, host)
		}
	}
	for _, host := range rest {
		at := host
		_, domain, _ := strings.Cut(host, ".")
		switch wider := f.secure["*."+domain]; {
		case wider != nil && wider.host == "*."+domain && !wider.passthrough && !strings.HasPrefix(host, "*"):
			at = wider.host // the certificate of its wildcard is its own, too
		case !f.covered(host):
			at = ""
		}
		if f.secure[at] == nil {
			f.secure[at] = open(&section{host: at, secure: true, certificate: c.options.Certificate}, strings.TrimSuffix("https-"+at, "-"))
		}
		f.secure[host] = f.secure[at]
	}
	f.admit(c.groups)
	f.divide(c)
}

// owners are, of the hosts that are served over TLS, the groups that decide which certificate clients see: one whose pods show it, else the one that the router
// goes by.
func (c *conversion) owners() map[string]*group {
	owners := make(map[string]*group)
	for _, g := range c.groups {
		if !g.ends() && !g.passes() {
			continue
		}
		if before := owners[g.host]; before == nil || c.decides(g, before) {
			owners[g.host] = g
		}
	}
	return owners
}

// decides reports whether the certificate of a host is that of g rather than that of o: the table ranks routes so.
func (c *conversion) decides(g, o *group) bool {
	if g.passes() != o.passes() {
		return g.passes()
	}
	if has, other := c.own(g) != (source.Key{}), c.own(o) != (source.Key{}); has != other {
		return has
	}
	a, b := &g.first().Route.CreationTimestamp, &o.first().Route.CreationTimestamp
	if !a.IsZero() && !b.IsZero() && !a.Equal(b) {
		return a.Before(b)
	}
	return cmp.Or(cmp.Compare(g.of.Namespace, o.of.Namespace), cmp.Compare(g.first().Route.Name, o.first().Route.Name)) > 0
}

// covered reports whether the listener of a wildcard would take a host.
func (f *frontend) covered(host string) bool {
	for other, s := range f.secure {
		if s.host != other {
			continue
		}
		if suffix, wild := strings.CutPrefix(other, "*"); wild && host != other && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// admit lets the namespaces of groups attach to their listeners.
func (f *frontend) admit(groups []*group) {
	for _, g := range groups {
		if g.plain() || g.redirects() {
			f.plain.namespaces[g.of.Namespace] = true
		}
		for _, s := range f.sections(g) {
			s.namespaces[g.of.Namespace] = true
		}
	}
}

// sections are the listeners with TLS that a group attaches to: that of its host, and of a wildcard those of hosts that it covers, because what these do
// not have is looked for among its paths.
func (f *frontend) sections(g *group) []*section {
	own := f.secure[g.host]
	if own == nil || own.passthrough != g.passes() || !g.ends() && !g.passes() {
		return nil
	}
	list := []*section{own}
	domain, wild := strings.CutPrefix(g.host, "*")
	for _, s := range f.all {
		label, below := strings.CutSuffix(s.host, domain)
		if wild && below && s != own && !s.passthrough && s.secure && label != "*" && !strings.Contains(label, ".") && len(list) < maxParents-1 {
			list = append(list, s)
		}
	}
	return list
}

// divide gives the listeners that are too many for a Gateway to ListenerSets.
func (f *frontend) divide(c *conversion) {
	slices.SortStableFunc(f.all, func(a, b *section) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.host, b.host))
	})
	for i, s := range f.all {
		if i >= maxListeners {
			s.set = fmt.Sprintf("%s-%d", c.options.Gateway.Name, i/maxListeners+1)
		}
	}
	if len(f.all) > maxListeners {
		c.notef(nil, Differs, "", "%d listeners are more than the %d that a Gateway may have: the others are in ListenerSets", len(f.all), maxListeners)
	}
}

// order has listeners for many hosts come first.
func order(s *section) int {
	switch {
	case !s.secure:
		return 0
	case s.host == "":
		return 1
	}
	return 2
}

// own is the Secret that a group names, or that is made for it; the zero value is none.
func (c *conversion) own(g *group) source.Key {
	tls := g.first().TLS
	route := g.first().Route
	switch {
	case tls == nil || g.passes():
		return source.Key{}
	case route.Spec.TLS != nil && route.Spec.TLS.ExternalCertificate != nil && route.Spec.TLS.ExternalCertificate.Name != "":
		return source.Key{Namespace: g.of.Namespace, Name: route.Spec.TLS.ExternalCertificate.Name}
	case tls.Certificate != "" && tls.Key != "":
		return source.Key{Namespace: g.of.Namespace, Name: shortened(route.Name+"-tls", maxName)}
	}
	return source.Key{}
}

// certificate is own, with the Secret made if there is none.
func (c *conversion) certificate(g *group) source.Key {
	key := c.own(g)
	route := g.first().Route
	if route.Spec.TLS.ExternalCertificate != nil && route.Spec.TLS.ExternalCertificate.Name != "" {
		return key
	}
	key.Name = c.name("Secret", key.Namespace, key.Name)
	tls := g.first().TLS
	chain := strings.TrimRight(tls.Certificate, "\n") + "\n"
	if tls.CACertificate != "" {
		chain += strings.TrimRight(tls.CACertificate, "\n") + "\n"
	}
	secret := &corev1.Secret{
		TypeMeta: coreType("Secret"), ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeTLS,
		StringData: map[string]string{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: strings.TrimRight(tls.Key, "\n") + "\n"},
	}
	c.secrets = append(c.secrets, secret)
	c.add(g.of, secret)
	return key
}

// gateway makes the Gateway with its listeners, its class if it is the router's own, and ListenerSets for what is too much for it.
func (c *conversion) gateway() []Object {
	o := &c.options
	var objects []Object
	class := o.Class
	if class == "" {
		class = DefaultClass
		objects = append(objects, &gatewayv1.GatewayClass{
			TypeMeta: gatewayType("GatewayClass"), ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: gatewayv1.GatewayClassSpec{ControllerName: ownController},
		})
	}
	if len(c.frontend.all) == 0 {
		return nil
	}
	g := &gatewayv1.Gateway{
		TypeMeta: gatewayType("Gateway"), ObjectMeta: metav1.ObjectMeta{Namespace: o.Gateway.Namespace, Name: o.Gateway.Name},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(class)},
	}
	objects = append(objects, g)
	sets := make(map[string]*gatewayv1.ListenerSet)
	for _, s := range c.frontend.all {
		entry := c.listener(s)
		if s.set == "" {
			g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener(entry))
			continue
		}
		if sets[s.set] == nil {
			sets[s.set] = &gatewayv1.ListenerSet{
				TypeMeta: gatewayType("ListenerSet"), ObjectMeta: metav1.ObjectMeta{Namespace: o.Gateway.Namespace, Name: s.set},
				Spec: gatewayv1.ListenerSetSpec{ParentRef: gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(o.Gateway.Name)}},
			}
			objects = append(objects, sets[s.set])
			g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ref(gatewayv1.NamespacesFromSame)}}
		}
		sets[s.set].Spec.Listeners = append(sets[s.set].Spec.Listeners, entry)
	}
	return objects
}

// ownController is spec.controllerName of the router's own class.
const ownController = "turnout.router/gateway"

// listener is a listener as a Gateway, or a ListenerSet, has it.
func (c *conversion) listener(s *section) gatewayv1.ListenerEntry {
	l := gatewayv1.ListenerEntry{Name: s.name, Port: gatewayv1.PortNumber(c.options.Plain), Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: c.allowed(s)}
	if s.host != "" {
		l.Hostname = ref(gatewayv1.Hostname(s.host))
	}
	if !s.secure {
		return l
	}
	l.Port, l.Protocol = gatewayv1.PortNumber(c.options.Secure), gatewayv1.HTTPSProtocolType
	if s.passthrough {
		l.Protocol, l.TLS = gatewayv1.TLSProtocolType, &gatewayv1.ListenerTLSConfig{Mode: ref(gatewayv1.TLSModePassthrough)}
		return l
	}
	to := gatewayv1.SecretObjectReference{Name: gatewayv1.ObjectName(s.certificate.Name)}
	if s.certificate.Namespace != c.options.Gateway.Namespace {
		to.Namespace = ref(gatewayv1.Namespace(s.certificate.Namespace))
	}
	l.TLS = &gatewayv1.ListenerTLSConfig{Mode: ref(gatewayv1.TLSModeTerminate), CertificateRefs: []gatewayv1.SecretObjectReference{to}}
	return l
}

// allowed lets the namespaces attach that have routes there now, and no others.
func (c *conversion) allowed(s *section) *gatewayv1.AllowedRoutes {
	names := slices.Sorted(maps.Keys(s.namespaces))
	if len(names) == 1 && names[0] == c.options.Gateway.Namespace {
		return &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ref(gatewayv1.NamespacesFromSame)}}
	}
	return &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ref(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names}},
	}}}
}

// grants let the Gateway, and ListenerSets, refer to Secrets of other namespaces.
func (c *conversion) grants() (objects []Object) {
	type to struct{ namespace, kind string }
	named := make(map[to]map[string]bool)
	for _, s := range c.frontend.all {
		if !s.secure || s.passthrough || s.certificate.Namespace == c.options.Gateway.Namespace {
			continue
		}
		at := to{s.certificate.Namespace, "Gateway"}
		if s.set != "" {
			at.kind = "ListenerSet"
		}
		if named[at] == nil {
			named[at] = make(map[string]bool)
		}
		named[at][s.certificate.Name] = true
	}
	for _, at := range slices.SortedFunc(maps.Keys(named), func(a, b to) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind))
	}) {
		for names := range slices.Chunk(slices.Sorted(maps.Keys(named[at])), maxGrants) {
			g := &gatewayv1.ReferenceGrant{
				TypeMeta: gatewayType("ReferenceGrant"), ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace},
				Spec: gatewayv1.ReferenceGrantSpec{From: []gatewayv1.ReferenceGrantFrom{{
					Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(at.kind), Namespace: gatewayv1.Namespace(c.options.Gateway.Namespace),
				}}},
			}
			g.Name = c.name("ReferenceGrant", at.namespace, c.options.Gateway.Name+"-certificates")
			for _, name := range names {
				g.Spec.To = append(g.Spec.To, gatewayv1.ReferenceGrantTo{Kind: "Secret", Name: ref(gatewayv1.ObjectName(name))})
			}
			objects = append(objects, g)
		}
	}
	return objects
}
