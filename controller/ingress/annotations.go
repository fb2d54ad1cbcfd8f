package ingress

import (
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/translate"
)

// The annotations that are read of an Ingress besides those of Routes.
const (
	AnnotationClass       = "kubernetes.io/ingress.class"
	AnnotationTermination = "route.openshift.io/termination"                       // edge, reencrypt, passthrough
	AnnotationInsecure    = "turnout.router/insecure-edge-termination-policy"      // None, Allow, Redirect
	AnnotationPodCA       = "route.openshift.io/destination-ca-certificate-secret" // of re-encrypt
)

// own are those that Routes have not, or have as a field.
var own = []string{AnnotationClass, AnnotationTermination, AnnotationInsecure, AnnotationPodCA}

// nginx begins the names of ingress-nginx's annotations.
const nginx = "nginx.ingress.kubernetes.io/"

// guarding are the annotations of ingress-nginx, or how several begin, that keep requests out. An Ingress with one of them is not served openly.
var guarding = []string{"auth-", "enable-global-auth", "whitelist-source-range", "allowlist-source-range", "denylist-source-range", "satisfy", "limit-", "global-rate-limit", "enable-modsecurity", "enable-owasp-core-rules", "modsecurity-"}

// guards returns the annotations that keep requests out elsewhere and that this router does not read, in order.
func guards(all map[string]string) (keys []string) {
	for key := range all {
		if Guards(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Guards reports whether an annotation is one of those that keep requests out elsewhere, and that this router does not read.
func Guards(key string) bool {
	name, ok := strings.CutPrefix(key, nginx)
	return ok && slices.ContainsFunc(guarding, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// Kept returns what is kept of the annotations of an Ingress: what is kept of those of a Route, those that are read besides, and the keys of those
// that keep requests out. It is nil for nothing.
func Kept(all map[string]string) map[string]string {
	var kept map[string]string
	put := func(key, value string) {
		if kept == nil {
			kept = make(map[string]string)
		}
		kept[key] = value
	}
	for key, value := range translate.Kept(all) {
		put(key, value)
	}
	for key, value := range all {
		switch {
		case slices.Contains(own, key):
			put(key, value)
		case Guards(key):
			put(key, "")
		}
	}
	return kept
}

// ofRoute returns the annotations that a Route of the Ingress has.
func ofRoute(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range translate.Kept(all) {
		if slices.Contains(own, key) {
			continue
		}
		if kept == nil {
			kept = make(map[string]string)
		}
		kept[key] = value
	}
	return kept
}

// treatment is what annotations say of TLS and plain HTTP.
type treatment struct {
	termination routev1.TLSTerminationType
	insecure    routev1.InsecureEdgeTerminationPolicyType // of hosts with an entry in spec.tls; "" = not said
	refused     []Problem                                 // why nothing of the Ingress is served
	notes       []Problem
}

// readTreatment reads the annotations of an Ingress.
func readTreatment(all map[string]string) treatment {
	t := treatment{termination: routev1.TLSTerminationEdge}
	switch value, ok := all[AnnotationTermination]; value {
	case "edge", "reencrypt", "passthrough":
		t.termination = routev1.TLSTerminationType(value)
	default:
		if ok {
			t.notef("annotation %s: %q is not edge, reencrypt or passthrough; edge is used", AnnotationTermination, translate.Shown(value))
		}
	}
	switch value, ok := all[AnnotationInsecure]; value {
	case "None", "Allow", "Redirect":
		t.insecure = routev1.InsecureEdgeTerminationPolicyType(value)
		if value == "Allow" && t.termination == routev1.TLSTerminationPassthrough {
			t.insecure = ""
			t.notef("annotation %s: Allow has no effect with passthrough termination; None is used", AnnotationInsecure)
		}
	default:
		if ok {
			t.notef("annotation %s: %q is not None, Allow or Redirect; Allow is used", AnnotationInsecure, translate.Shown(value))
		}
	}
	if _, ok := all[AnnotationPodCA]; ok && t.termination == routev1.TLSTerminationReencrypt {
		t.refused = append(t.refused, Problem{ReasonAnnotation, fmt.Sprintf("annotation %s is not read: pods would not be verified as it asks, so that requests are answered with 503; "+
			"write a Route, or give the router --default-destination-ca-path and remove the annotation", AnnotationPodCA)})
	}
	if keys := guards(all); len(keys) > 0 {
		t.refused = append(t.refused, Problem{ReasonAnnotation, fmt.Sprintf("annotations are not read that keep requests out, so that all are answered with 503; remove them: %s", some(keys))})
	}
	return t
}

func (t *treatment) notef(format string, args ...any) {
	t.notes = append(t.notes, Problem{ReasonAnnotation, fmt.Sprintf(format, args...)})
}

// mostNamed is how many things one message names.
const mostNamed = 8

// some names a few of a list.
func some(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
