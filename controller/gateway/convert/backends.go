package convert

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/controller/translate"
	"turnout/internal/expression"
	"turnout/routing"
)

// backends are the Services that the requests of an item are shared by, that of the object first.
func (c *conversion) backends(g *group, it *Item) (list []gatewayv1.BackendRef) {
	shares := translate.Shares(it.Route)
	slices.SortStableFunc(shares, func(a, b translate.Share) int {
		first := it.Route.Spec.To.Name
		return cmp.Compare(b2i(a.Service != first), b2i(b.Service != first))
	})
	for _, s := range shares {
		b, ok := c.backend(g, it, s.Service, wantedPort(it))
		if !ok {
			continue
		}
		if len(shares) > 1 || s.Weight == 0 {
			b.Weight = ref(int32(s.Weight))
		}
		list = append(list, b)
	}
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wantedPort is the port of pods that an item names, "" for any.
func wantedPort(it *Item) string {
	if it.Route.Spec.Port == nil {
		return ""
	}
	return it.Route.Spec.Port.TargetPort.String()
}

// backend refers to a Service, and has it spoken to as the item wants it. False: its port cannot be said.
func (c *conversion) backend(g *group, it *Item, service, wanted string) (b gatewayv1.BackendRef, ok bool) {
	number, port, ok := c.port(g, service, wanted)
	if !ok {
		return b, false
	}
	c.secure(g, it, service, port)
	b.Name, b.Port = gatewayv1.ObjectName(service), &number
	return b, true
}

// mirrors are the filters that copy requests of an item.
func (c *conversion) mirrors(g *group, it *Item) (list []gatewayv1.HTTPRouteFilter) {
	if len(it.Rules) == 0 {
		return nil
	}
	for i := range it.Rules[0].Mirrors {
		m := &it.Rules[0].Mirrors[i]
		service, wanted, _ := strings.Cut(m.Key, ":")
		if wanted == "" {
			wanted = wantedPort(it)
		}
		b, ok := c.backend(g, it, service, wanted)
		if !ok {
			continue
		}
		f := &gatewayv1.HTTPRequestMirrorFilter{BackendRef: b.BackendObjectReference}
		if m.Denominator == 100 {
			f.Percent = ref(int32(m.Numerator))
		}
		list = append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: f})
	}
	return list
}

// canaries are the rules of an item for requests that ask for its canary, made of the rule for all.
func (c *conversion) canaries(g *group, it *Item, all *gatewayv1.HTTPRouteRule) (list []gatewayv1.HTTPRouteRule) {
	if len(it.Rules) < 2 || len(all.BackendRefs) == 0 {
		return nil
	}
	b, ok := c.backend(g, it, translate.Canary(it.Route), wantedPort(it))
	if !ok {
		return nil
	}
	for i := range it.Rules[1:] {
		rule := *all.DeepCopy()
		rule.BackendRefs = []gatewayv1.HTTPBackendRef{{BackendRef: b}}
		for _, h := range it.Rules[i+1].Match.Headers {
			rule.Matches[0].Headers = append(rule.Matches[0].Headers,
				gatewayv1.HTTPHeaderMatch{Type: ref(gatewayv1.HeaderMatchExact), Name: gatewayv1.HTTPHeaderName(h.Name), Value: h.Value})
		}
		for _, k := range it.Rules[i+1].Match.Cookies { // the Gateway API has no match for cookies
			text := `(?:.*;[ \t]*)?` + expression.Quote(k.Name+"="+k.Value) + `(?:[ \t]*;.*)?`
			rule.Matches[0].Headers = append(rule.Matches[0].Headers,
				gatewayv1.HTTPHeaderMatch{Type: ref(gatewayv1.HeaderMatchRegularExpression), Name: "cookie", Value: text})
		}
		list = append(list, rule)
	}
	return list
}

// port finds the port of a Service that is wanted: a Route says that of the pods, and the Gateway API wants that of the Service. port is nil if the Service is
// not known.
func (c *conversion) port(g *group, name, wanted string) (number gatewayv1.PortNumber, port *corev1.ServicePort, ok bool) {
	service := c.in.Services[source.Key{Namespace: g.of.Namespace, Name: name}]
	if service == nil {
		if n, err := strconv.Atoi(wanted); err == nil && n > 0 {
			c.notef(g.of, Differs, "spec.port", "Service %s is not there; its port is taken to be %d, as that of its pods", name, n)
			return gatewayv1.PortNumber(n), nil, true
		}
		c.notef(g.of, LeftOut, "Service "+name, "it is not there, so that nobody knows its port: nothing is sent to it")
		return 0, nil, false
	}
	ports := slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(p corev1.ServicePort) bool { return p.Protocol != "" && p.Protocol != corev1.ProtocolTCP })
	if wanted == "" && len(ports) > 1 {
		c.notef(g.of, NoEqual, "spec.port", "requests went to all ports of Service %s; a reference has one: %d is used", name, ports[0].Port)
	}
	for _, is := range []func(*corev1.ServicePort) bool{
		func(p *corev1.ServicePort) bool { return wanted == "" || p.Name == wanted },
		func(p *corev1.ServicePort) bool { return target(p) == wanted },
		func(p *corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == wanted },
	} {
		if i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return is(&p) }); i >= 0 {
			if isStandIn(service) {
				c.notef(g.of, Differs, "Service "+name, "it is not there: requests are answered with 500 until it is")
			}
			return ports[i].Port, &ports[i], true
		}
	}
	c.notef(g.of, LeftOut, "spec.port", "Service %s has no port %s: nothing is sent to it", name, wanted)
	return 0, nil, false
}

// target is the port of pods, as a Service says it.
func target(p *corev1.ServicePort) string {
	if text := p.TargetPort.String(); text != "" && text != "0" {
		return text
	}
	return strconv.Itoa(int(p.Port))
}

// policyTarget is what a BackendTLSPolicy is for.
type policyTarget struct {
	service source.Key
	port    string // "" = all of it
}

// aPolicy is what is known of the TLS of a target.
type aPolicy struct {
	by    *Source
	ca    string
	plain *Source // an object that sends requests there without TLS
}

// secure makes the BackendTLSPolicy of a Service that is spoken to over TLS.
func (c *conversion) secure(g *group, it *Item, service string, port *corev1.ServicePort) {
	at := policyTarget{service: source.Key{Namespace: g.of.Namespace, Name: service}}
	known := c.in.Services[at.service]
	if known != nil && len(known.Spec.Ports) > 1 && port != nil && !isStandIn(known) {
		at.port = port.Name
	}
	p := c.policies[at]
	if p == nil {
		p = new(aPolicy)
		c.policies[at] = p
	}
	if it.Spec.Termination != routing.TermReencrypt {
		if it.Spec.Termination != routing.TermPassthrough && p.plain == nil {
			p.plain = g.of
		}
		c.clash(p, service)
		return
	}
	ca := it.TLS.DestinationCACertificate
	if p.by != nil {
		if p.ca != ca {
			c.notef(g.of, NoEqual, "spec.tls.destinationCACertificate", "a Service has one BackendTLSPolicy, and Service %s has that of %s", service, p.by)
		}
		return
	}
	p.by, p.ca = g.of, ca
	c.clash(p, service)
	c.policy(g, at, ca)
}

// clash says that a Service is spoken to with TLS and without.
func (c *conversion) clash(p *aPolicy, service string) {
	if p.plain != nil && p.by != nil {
		c.notef(p.plain, NoEqual, "Service "+service, "its pods are spoken to over TLS, because they are by %s: a BackendTLSPolicy is for all routes of a Service", p.by)
	}
}

// policy makes a BackendTLSPolicy, and the ConfigMap with its authorities.
func (c *conversion) policy(g *group, at policyTarget, ca string) {
	wanted := at.service.Name
	if at.port != "" {
		wanted += "-" + at.port
	}
	host := at.service.Name + "." + at.service.Namespace + ".svc"
	p := &gatewayv1.BackendTLSPolicy{
		TypeMeta: gatewayType("BackendTLSPolicy"), ObjectMeta: metav1.ObjectMeta{Namespace: at.service.Namespace, Name: c.name("BackendTLSPolicy", at.service.Namespace, wanted)},
	}
	to := gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(at.service.Name)}}
	if at.port != "" {
		to.SectionName = ref(gatewayv1.SectionName(at.port))
	}
	p.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{to}
	p.Spec.Validation.Hostname = gatewayv1.PreciseHostname(host)
	switch {
	case ca != "":
		c.notef(g.of, Differs, "spec.tls.destinationCACertificate", "certificates of pods must be for %s, too, which is sent as the name of TLS", host)
	case len(c.options.DestinationCA) > 0:
		ca = string(c.options.DestinationCA)
	default:
		p.Spec.Validation.WellKnownCACertificates = ref(gatewayv1.WellKnownCACertificatesSystem)
		c.notef(g.of, NoEqual, "spec.tls.termination", "pods of re-encrypt routes without destinationCACertificate were not verified; BackendTLSPolicy %s wants a certificate for %s of an authority of the system: "+
			"put the pods' authority into a ConfigMap and name it there, or give --default-destination-ca-path", p.Name, host)
	}
	if ca != "" {
		authorities := &corev1.ConfigMap{TypeMeta: coreType("ConfigMap"), Data: map[string]string{"ca.crt": strings.TrimRight(ca, "\n") + "\n"}}
		authorities.Namespace, authorities.Name = at.service.Namespace, c.name("ConfigMap", at.service.Namespace, p.Name+"-ca")
		p.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: gatewayv1.ObjectName(authorities.Name)}}
		c.policed = append(c.policed, authorities)
		c.add(g.of, authorities)
	}
	c.policed = append(c.policed, p)
	c.add(g.of, p)
}
