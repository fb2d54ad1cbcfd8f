package ingress

import (
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"turnout/controller/expansion"
)

// secretsOf returns the names of Secrets by the hosts that entries of spec.tls name, "" for the default certificate. Of several entries the first
// counts; the host "" is that of an entry that names none.
func secretsOf(entries []networkingv1.IngressTLS) map[string]string {
	all := make(map[string]string)
	put := func(host, secret string) {
		if _, there := all[host]; !there {
			all[host] = secret
		}
	}
	for i := range entries {
		if len(entries[i].Hosts) == 0 {
			put("", entries[i].SecretName)
		}
		for _, host := range entries[i].Hosts {
			if host != "" {
				put(host, entries[i].SecretName)
			}
		}
	}
	return all
}

// secret returns the name of the Secret with the certificate of a host, "" for the default certificate: of the entry that names the host, else
// of the one with a wildcard that covers it, else of the one that names no hosts. named is false where no entry is for the host.
func (e *expander) secret(host string) (name string, named bool) {
	if name, named = e.secrets[host]; named {
		return name, true
	}
	if _, domain, ok := strings.Cut(host, "."); ok {
		if name, named = e.secrets["*."+domain]; named {
			return name, true
		}
	}
	name, named = e.secrets[""]
	return name, named
}

// tls returns the TLS settings of a host. Every host is served over TLS, with the default certificate if it has none, and those are redirected to it that
// have an entry in spec.tls, if the Ingress asks for it.
func (e *expander) tls(host string) *routev1.TLSConfig {
	out := &routev1.TLSConfig{Termination: e.treatment.termination, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyAllow}
	name, named := e.secret(host)
	passthrough := out.Termination == routev1.TLSTerminationPassthrough
	switch {
	case e.treatment.insecure != "" && (named || passthrough):
		out.InsecureEdgeTerminationPolicy = e.treatment.insecure
	case passthrough:
		out.InsecureEdgeTerminationPolicy = routev1.InsecureEdgeTerminationPolicyNone
	}
	if name != "" && !passthrough {
		out.ExternalCertificate = &routev1.LocalObjectReference{Name: name}
	}
	return out
}

// ofTLS returns the items that cover hosts which only spec.tls names, once more for each of these: a host has its own certificate under its own
// name only.
func (e *expander) ofTLS(items []item) (more []item) {
	byHost, domains := make(map[string][]*item), make(map[string]bool)
	for i := range items {
		byHost[items[i].host] = append(byHost[items[i].host], &items[i])
	}
	for i := range e.in.Ingress.Spec.Rules {
		host := e.in.Ingress.Spec.Rules[i].Host
		if byHost[host] == nil {
			byHost[host] = []*item{} // nothing is served there
		}
		_, domain, _ := strings.Cut(host, ".")
		domains["*."+domain] = true
	}
	for _, entry := range e.in.Ingress.Spec.TLS {
		for _, host := range entry.Hosts {
			if _, known := byHost[host]; known || host == "" || host == AnyHost || len(more) > expansion.MaxRules {
				continue
			}
			_, domain, _ := strings.Cut(host, ".")
			covering := byHost[""]
			if wild := byHost["*."+domain]; wild != nil && host[0] != '*' {
				covering = wild
			}
			if len(covering) == 0 && !domains[host] {
				e.problem(ReasonTLSHost, "spec.tls names host %s, and no rule is for it: its certificate is not served", host)
			}
			byHost[host] = []*item{}
			for _, it := range covering {
				twin := *it
				twin.host = host
				more = append(more, twin)
			}
		}
	}
	return more
}
