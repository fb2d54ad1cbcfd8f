package peer

import (
	"fmt"
	"strings"

	"turnout/bench/load"
)

// manifests are the site as Kubernetes objects: what `turnout run --manifests` reads.
func (s *layout) manifests() string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", namespace)
	for k, addr := range s.upstreams {
		fmt.Fprintf(&text, serviceForm, serviceName(k), namespace, addr.Addr(), addr.Port())
	}
	for i := range s.routes {
		text.WriteString(s.routeManifest(i))
	}
	return text.String()
}

// serviceForm takes the service's name, the namespace, the endpoint's address and its port.
const serviceForm = `---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: %[2]s
spec:
  ports:
  - name: http
    port: 80
    protocol: TCP
    targetPort: http
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-1
  namespace: %[2]s
  labels:
    kubernetes.io/service-name: %[1]s
addressType: IPv4
endpoints:
- addresses: [%[3]s]
  conditions: {ready: true, serving: true, terminating: false}
ports:
- name: http
  port: %[4]d
  protocol: TCP
`

// routeForm takes the route's name, the namespace, disable_cookies, the host and the service.
const routeForm = `---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: %[1]s
  namespace: %[2]s
  uid: bench-%[1]s
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations:
    haproxy.router.openshift.io/disable_cookies: "%[3]t"
    haproxy.router.openshift.io/set-forwarded-headers: append
spec:
  host: %[4]s
  to: {kind: Service, name: %[5]s, weight: 100}
  port: {targetPort: http}
  wildcardPolicy: None
`

func (s *layout) routeManifest(i int) string {
	text := fmt.Sprintf(routeForm, routeName(i), namespace, !s.cookie, load.Host(i), serviceName(i%len(s.upstreams)))
	if s.tls {
		termination := "edge"
		if s.pods.Certificate != "" {
			termination = "reencrypt"
		}
		text += "  tls:\n    termination: " + termination + "\n" +
			"    certificate: |\n" + indent(s.pem.Certificate) +
			"    key: |\n" + indent(s.pem.Key)
		if s.pods.Certificate != "" {
			text += "    destinationCACertificate: |\n" + indent(s.pods.Certificate)
		}
	}
	if s.through {
		text += "  tls: {termination: passthrough}\n"
	}
	if s.rules {
		text = strings.Replace(text, "spec:\n", "    haproxy.router.openshift.io/hsts_header: "+hsts+"\nspec:\n", 1) + rulesForm
		if !s.tls {
			text += "  tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}\n"
		}
	}
	return text
}

// rulesForm are the header actions of a site with rules.
const rulesForm = `  httpHeaders:
    actions:
      request:
      - name: X-Agent
        action: {type: Set, set: {value: "%[req.hdr(User-Agent),lower]"}}
      response:
      - name: X-Frame-Options
        action: {type: Set, set: {value: DENY}}
`

// indent moves every line of a PEM text under a key of the route's tls.
func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}
