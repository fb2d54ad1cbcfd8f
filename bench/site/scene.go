package site

import (
	"fmt"
	"net/netip"
	"strings"
)

// NoCookies is the annotation of a route whose answers set no sticky cookie.
const NoCookies = `haproxy.router.openshift.io/disable_cookies: "true"`

// Route is the manifest of a route. What is not set is left to the router.
type Route struct {
	Namespace   string // "" = bench
	Name        string // "" = that of the service
	Host        string
	Service     string
	Annotations string // as they stand between braces
	TLS         string // the same, termination first; "" = none
	More        string // of the spec, the same
}

func orBench(namespace string) string {
	if namespace == "" {
		return "bench"
	}
	return namespace
}

// String is the document, to be put behind others.
func (r Route) String() string {
	name, rest := r.Name, ""
	if name == "" {
		name = r.Service
	}
	if r.TLS != "" {
		rest += ", tls: {" + r.TLS + "}"
	}
	if r.More != "" {
		rest += ", " + r.More
	}
	return fmt.Sprintf(`---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: %s, namespace: %s, annotations: {%s}}
spec: {host: %s, to: {kind: Service, name: %s, weight: 100}%s}
`, name, orBench(r.Namespace), r.Annotations, r.Host, r.Service, rest)
}

// EdgeTLS is the TLS of a route with a certificate of its own, which takes plain requests too.
func (k KeyPair) EdgeTLS() string {
	return fmt.Sprintf("termination: edge, insecureEdgeTerminationPolicy: Allow, certificate: %q, key: %q", k.Certificate, k.Key)
}

// Service is pods of one port and protocol, by their addresses. Of several that have one name, each is more pods of the service.
type Service struct {
	Namespace string // "" = bench
	Name      string
	Protocol  string // appProtocol; "" = none is said
	Port      int
	Addrs     []netip.Addr // none = 127.0.0.1
}

// String is the manifest of an EndpointSlice, to be put behind others.
func (s Service) String() string {
	addrs := s.Addrs
	if len(addrs) == 0 {
		addrs = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	var b strings.Builder
	protocol := ""
	if s.Protocol != "" {
		protocol = ", appProtocol: " + s.Protocol
	}
	fmt.Fprintf(&b, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]s-%[3]d, namespace: %[4]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[3]d%[5]s}]
endpoints:
`, s.Name, strings.ReplaceAll(addrs[0].String(), ".", "-"), s.Port, orBench(s.Namespace), protocol)
	for _, a := range addrs {
		fmt.Fprintf(&b, "- {addresses: [%s], conditions: {ready: true}}\n", a)
	}
	return b.String()
}
