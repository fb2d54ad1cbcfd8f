package gateway

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/gateway/condition"
	"turnout/controller/source"
	"turnout/internal/certchain"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// policy is a BackendTLSPolicy, as it is judged.
type policy struct {
	object *gatewayv1.BackendTLSPolicy
	reason gatewayv1.PolicyConditionReason // why it is not accepted; "" = it is
	why    string
	refs   gatewayv1.PolicyConditionReason // why not all references are resolved
	refWhy string

	config balancer.TLSConfig // but for what differs by Gateway and by kind of route
	needs  keys               // ConfigMaps with authorities
	made   map[tlsOf]madeTLS
}

// tlsOf identifies a TLS identity, together with the policy.
type tlsOf struct {
	client *routing.CertificateSpec // of the Gateway; nil = none
	kind   string                   // of route
}

// madeTLS is a TLS identity, or the reason why there is none.
type madeTLS struct {
	tls *balancer.TLS
	err error
}

// policies are those that count, by what they are for.
type policies struct {
	all      []*policy // oldest first
	by       map[policyTarget]*policy
	services keys // that they are for
}

// policyTarget is a Service, or a port of it.
type policyTarget struct {
	service source.Key
	port    string // its name; "" = the whole Service
}

// of returns the policy for a port of a Service, nil if there is none. One for the port comes before one for the whole Service.
func (p *policies) of(service source.Key, port string) *policy {
	if port != "" {
		if found := p.by[policyTarget{service, port}]; found != nil {
			return found
		}
	}
	return p.by[policyTarget{service, ""}]
}

// judgePolicies judges all policies, but for the Gateways that they matter to.
func (j *Judge) judgePolicies(o *Objects) {
	j.referring(&j.ofPolicies)
	j.affected = true
	before := j.policies
	j.policies = policies{by: make(map[policyTarget]*policy), services: keys{}}
	for _, object := range o.Policies.All() {
		j.policies.all = append(j.policies.all, &policy{object: object, needs: keys{}})
	}
	slices.SortFunc(j.policies.all, func(a, b *policy) int { return older(a.object, b.object) })
	for _, p := range j.policies.all {
		for _, ref := range p.object.Spec.TargetRefs {
			j.claim(o, p, &ref)
		}
		if !j.guard(Ref{kindPolicy, source.Key{Namespace: p.object.Namespace, Name: p.object.Name}}, func() { j.validation(o, p) }) {
			p.reject(gatewayv1.PolicyReasonInvalid, broken)
		}
	}
	for _, list := range [...]map[policyTarget]*policy{before.by, j.policies.by} {
		for at := range list {
			if a, b := before.by[at], j.policies.by[at]; a == nil || b == nil || !a.secures(b) {
				j.spoil(j.byService[at.service])
			}
		}
	}
}

// secures reports whether endpoints are reached by both policies in the same way.
func (p *policy) secures(o *policy) bool {
	return p.object.Name == o.object.Name && (p.reason == "") == (o.reason == "") && reflect.DeepEqual(p.config, o.config)
}

// claim gives a policy what one of its references names, unless an older one has it.
func (j *Judge) claim(o *Objects, p *policy, ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
	if ref.Group != "" || ref.Kind != "Service" {
		p.reject(gatewayv1.PolicyReasonInvalid, fmt.Sprintf("targetRefs names a %s of group %q; allowed is a Service", ref.Kind, ref.Group))
		return
	}
	at := p.target(ref)
	j.policies.services[at.service] = struct{}{}
	if other := j.policies.by[at]; other != nil {
		if other != p {
			p.reject(gatewayv1.PolicyReasonConflicted, "BackendTLSPolicy "+other.object.Name+" is older and has the same target")
		}
		return
	}
	j.policies.by[at] = p
	known := o.Services.Get(at.service)
	if known == nil || known.Object == nil || at.port != "" && !slices.ContainsFunc(known.Object.Spec.Ports, func(s corev1.ServicePort) bool { return s.Name == at.port }) {
		p.reject(gatewayv1.PolicyReasonTargetNotFound, "There is no Service "+string(ref.Name)+" with such a port")
	}
}

// reject says why the policy is not accepted, unless something was said before.
func (p *policy) reject(reason gatewayv1.PolicyConditionReason, why string) {
	if p.reason == "" {
		p.reason, p.why = reason, why
	}
}

// validation resolves by what a policy recognises endpoints.
func (j *Judge) validation(o *Objects, p *policy) {
	v := &p.object.Spec.Validation
	p.config = balancer.TLSConfig{Verify: true, SNI: string(v.Hostname)}
	if !identity(&p.config, v) {
		p.reject(gatewayv1.PolicyReasonInvalid, "subjectAltNames has a type that is unknown")
	}
	if len(v.CACertificateRefs) == 0 {
		switch known := value(v.WellKnownCACertificates, ""); known {
		case gatewayv1.WellKnownCACertificatesSystem:
			p.config.System = true
		default:
			p.reject(gatewayv1.PolicyReasonInvalid, fmt.Sprintf("wellKnownCACertificates is %q; supported: System", known))
		}
		return
	}
	var texts []string
	for _, ref := range v.CACertificateRefs {
		key := source.Key{Namespace: p.object.Namespace, Name: string(ref.Name)}
		p.needs[key] = struct{}{}
		text, err := j.authorities(o, kindPolicy, p.object.Namespace, ref.Group, ref.Kind, key)
		if err == nil {
			texts = append(texts, strings.TrimRight(text, "\n")+"\n")
			continue
		}
		if p.refs == "" {
			p.refs, p.refWhy = gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef, err.message
			if err.badKind {
				p.refs = gatewayv1.BackendTLSPolicyReasonInvalidKind
			}
		}
	}
	if len(texts) == 0 {
		p.reject(gatewayv1.BackendTLSPolicyReasonNoValidCACertificate, "No reference to authorities can be used: "+p.refWhy)
	}
	p.config.CA = strings.Join(texts, "")
}

// policyTLS is how endpoints that a policy is for are reached by a Gateway.
func (j *Judge) policyTLS(g *gateway, p *policy, kind string) (*balancer.TLS, error) {
	if p.reason != "" {
		return nil, fmt.Errorf("BackendTLSPolicy %s is not accepted: %s", p.object.Name, p.why)
	}
	of := tlsOf{g.client, kind}
	if made, ok := p.made[of]; ok {
		return made.tls, made.err
	}
	if p.made == nil {
		p.made = make(map[tlsOf]madeTLS)
	}
	made, err := j.newPolicyTLS(g, p, kind)
	p.made[of] = madeTLS{made, err}
	return made, err
}

// newPolicyTLS makes the TLS identity of a policy. Equal ones are one object.
func (j *Judge) newPolicyTLS(g *gateway, p *policy, kind string) (*balancer.TLS, error) {
	config := p.config
	switch kind {
	case kindHTTPRoute:
		config.ALPN = j.cfg.UpstreamALPN
	case kindGRPCRoute:
		config.ALPN = []protocol.Protocol{protocol.HTTP2}
	}
	if g.client != nil {
		config.CertPEM, config.KeyPEM = g.client.Certificate, g.client.Key
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", config))
	made, err := j.tls.Of(string(sum[:]), func() (*balancer.TLS, error) {
		ca := sha256.Sum256(fmt.Append(nil, config.System, config.CA))
		var err error
		config.Roots, err = j.roots.Of(string(ca[:]), func() (*certchain.Set, error) { return certchain.ParseRoots(config.CA, config.System) })
		if err != nil {
			return nil, err
		}
		return balancer.NewTLS(config)
	})
	if err != nil {
		return nil, fmt.Errorf("BackendTLSPolicy %s: %w", p.object.Name, err)
	}
	return made, nil
}

// target is what a reference of a policy names.
func (p *policy) target(ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) policyTarget {
	return policyTarget{source.Key{Namespace: p.object.Namespace, Name: string(ref.Name)}, string(value(ref.SectionName, ""))}
}

// ancestors are the Gateways that a policy matters to, because a route there names what it is for.
func (j *Judge) ancestors(p *policy) map[source.Key]*gateway {
	found := make(map[source.Key]*gateway)
	for i := range p.object.Spec.TargetRefs {
		if ref := &p.object.Spec.TargetRefs[i]; ref.Group == "" && ref.Kind == "Service" {
			j.reached(p.target(ref), found)
		}
	}
	return found
}

// status is what that of a policy is to be, nil if it matters to no Gateway of ours.
func (p *policy) status(controller gatewayv1.GatewayController, ancestors map[source.Key]*gateway) *gatewayv1.PolicyStatus {
	if len(ancestors) == 0 {
		return nil
	}
	list := condition.List{Generation: p.object.Generation}
	accepted, resolved := string(gatewayv1.PolicyConditionAccepted), string(gatewayv1.BackendTLSPolicyConditionResolvedRefs)
	if p.reason != "" {
		list.False(accepted, string(p.reason), p.why)
	} else {
		list.True(accepted, string(gatewayv1.PolicyReasonAccepted), "The policy is in effect")
	}
	if p.refs != "" {
		list.False(resolved, string(p.refs), p.refWhy)
	} else {
		list.True(resolved, string(gatewayv1.BackendTLSPolicyReasonResolvedRefs), "All references are resolved")
	}
	status := &gatewayv1.PolicyStatus{}
	for _, key := range slices.SortedFunc(maps.Keys(ancestors), compareKeys) {
		group, kind, namespace := gatewayv1.Group(groupName), gatewayv1.Kind(kindGateway), gatewayv1.Namespace(key.Namespace)
		ref := gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(key.Name)}
		status.Ancestors = append(status.Ancestors, gatewayv1.PolicyAncestorStatus{AncestorRef: ref, ControllerName: controller, Conditions: slices.Clone(list.Conditions)})
	}
	return status
}
