package translate

import (
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/internal/wire/field"
	"turnout/routing"
)

// The annotations that have some requests, or copies of them, go to another service than those of the spec. It is always one of the route's namespace.
const (
	annotationMirror        = "turnout.router/mirror"
	annotationMirrorPercent = "turnout.router/mirror-percent"
	annotationCanary        = "turnout.router/canary"
	annotationCanaryHeader  = "turnout.router/canary-by-header"
	annotationCanaryValue   = "turnout.router/canary-by-header-value"
	annotationCanaryCookie  = "turnout.router/canary-by-cookie"
	annotationCanaryWeight  = "turnout.router/canary-weight"
)

var besideKeys = []string{
	annotationMirror, annotationMirrorPercent, annotationCanary, annotationCanaryHeader, annotationCanaryValue, annotationCanaryCookie, annotationCanaryWeight,
}

// beside is what a few routes have besides the services of their spec.
type beside struct {
	mirrors []side
	percent int // of the requests are copied
	canary  *side
	asked   []routing.Match // conditions; a request that meets one of them gets the canary
}

// side is a service, and the servers that it has.
type side struct {
	key     string // SERVICE or SERVICE:PORT
	fleet   fleet
	targets []balancer.Target
}

// What bounds an annotation about another service.
const (
	maxMirrors     = 4
	maxHeaderValue = 1024
)

// Said of services without endpoints.
const (
	idleRoute  = "requests are answered with 503"
	idleMirror = "annotation " + annotationMirror + ": no endpoint can be chosen: nothing is copied to service "
	idleCanary = "annotation " + annotationCanary + ": no endpoint can be chosen: the requests that it is for are answered with 503"
)

// always is the value by which requests ask for the canary unless another one is said.
const always = "always"

// beside reads where requests go besides the services of the spec, nil = nowhere.
func (a *annotations) beside(kind endpoints.Kind) *beside {
	if kind.Passthrough {
		a.unused("passthrough", besideKeys...)
		return nil
	}
	b := &beside{}
	a.mirrors(b, kind)
	a.canary(b, kind)
	if len(b.mirrors) == 0 && b.canary == nil {
		return nil
	}
	return b
}

// mirrors reads where copies go.
func (a *annotations) mirrors(b *beside, kind endpoints.Kind) {
	if a.values[annotationMirror] == "" {
		a.without(annotationMirror, annotationMirrorPercent)
		return
	}
	b.percent = a.number(annotationMirrorPercent, 0, 100, "a number", 100, "100")
	for _, word := range a.words(annotationMirror, "a service of the namespace, or a service, a colon and a port", isService) {
		if len(b.mirrors) == maxMirrors {
			a.notes = append(a.notes, fmt.Sprintf("annotation %s: has more than %d services; the others are left out", annotationMirror, maxMirrors))
			break
		}
		name, port, _ := strings.Cut(word, ":")
		at := kind
		if port != "" {
			at.Port = port
		}
		b.mirrors = append(b.mirrors, side{key: word, fleet: fleet{kind: at, names: []backend{{name: name, weight: 1}}, idle: idleMirror + name}})
	}
	if b.percent == 0 {
		b.mirrors = nil
	}
}

// canary reads which requests go to another service.
func (a *annotations) canary(b *beside, kind endpoints.Kind) {
	name, ok := a.values[annotationCanary]
	switch {
	case !ok:
		a.without(annotationCanary, annotationCanaryHeader, annotationCanaryValue, annotationCanaryCookie, annotationCanaryWeight)
		return
	case !isLabel(name):
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect: %q is not the name of a service of the namespace", annotationCanary, Shown(name)))
		return
	}
	if header := a.values[annotationCanaryHeader]; header != "" {
		if m, ok := a.canaryHeader(header); ok {
			b.asked = append(b.asked, routing.Match{Headers: []routing.ValueMatch{m}})
		}
	} else {
		a.without(annotationCanaryHeader, annotationCanaryValue)
	}
	if cookie := a.values[annotationCanaryCookie]; cookie != "" {
		if field.IsToken(cookie) {
			b.asked = append(b.asked, routing.Match{Cookies: []routing.ValueMatch{{Name: cookie, Value: always}}})
		} else {
			a.invalid(annotationCanaryCookie, cookie, "is not the name of a cookie", "no cookie")
		}
	}
	if _, weighed := a.values[annotationCanaryWeight]; len(b.asked) == 0 && !weighed {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect: no header, cookie or weight says which requests are for it", annotationCanary))
	}
	if len(b.asked) > 0 {
		b.canary = &side{key: name, fleet: fleet{kind: kind, names: []backend{{name: name, weight: 1}}, idle: idleCanary}}
	}
}

// canaryHeader reads by which header requests ask for the canary.
func (a *annotations) canaryHeader(name string) (m routing.ValueMatch, ok bool) {
	if !field.IsToken(name) {
		a.invalid(annotationCanaryHeader, name, "is not the name of a header", "no header")
		return m, false
	}
	m = routing.ValueMatch{Name: strings.ToLower(name), Value: always}
	if value := a.values[annotationCanaryValue]; value != "" {
		if len(value) > maxHeaderValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.TrimSpace(value) != value {
			a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect: %q is no value of a header, of at most %d bytes; no request is taken for it", annotationCanaryHeader, Shown(value), maxHeaderValue))
			return m, false
		}
		m.Value = value
	}
	return m, true
}

// share gives the canary its share of the requests that do not ask for it.
func (a *annotations) share(r *routev1.Route, names []backend) []backend {
	name := a.values[annotationCanary]
	if _, ok := a.values[annotationCanaryWeight]; !ok || !isLabel(name) || len(names) == 0 {
		return names
	}
	weight := a.number(annotationCanaryWeight, 0, 100, "a number", 0, "0")
	switch {
	case len(r.Spec.AlternateBackends) > 0:
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect beside alternateBackends; the service can have a weight there", annotationCanaryWeight))
		return names
	case weight == 0 || names[0].name == name:
		return names
	}
	names[0].weight = 100 - weight
	names = append(names, backend{name: name, weight: weight})
	slices.SortFunc(names, func(a, b backend) int { return strings.Compare(a.name, b.name) })
	return names
}

// sides calls do for each service that there is besides. b may be nil.
func (b *beside) sides(do func(*side)) {
	if b == nil {
		return
	}
	for i := range b.mirrors {
		do(&b.mirrors[i])
	}
	if b.canary != nil {
		do(b.canary)
	}
}

// sameAs reports whether the services of both, which may be nil, are the same.
func (b *beside) sameAs(o *beside) bool {
	var mine, theirs []fleet
	b.sides(func(s *side) { mine = append(mine, s.fleet) })
	o.sides(func(s *side) { theirs = append(theirs, s.fleet) })
	return slices.EqualFunc(mine, theirs, func(a, b fleet) bool { return a.kind == b.kind && slices.Equal(a.names, b.names) })
}

// mirrorSpecs are where copies go. b may be nil.
func (b *beside) mirrorSpecs(pool balancer.PoolConfig) (specs []routing.MirrorSpec) {
	if b == nil {
		return nil
	}
	for i := range b.mirrors {
		s := &b.mirrors[i]
		spec := routing.MirrorSpec{Key: s.key, Pool: pool, Targets: s.targets}
		if b.percent < 100 {
			spec.Numerator, spec.Denominator = b.percent, 100
		}
		specs = append(specs, spec)
	}
	return specs
}

// isLabel reports the name of a Service (RFC 1035 section 2.3.1, in lower-case letters).
func isLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && (c != '-' || i == len(s)-1)) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// isService reports SERVICE or SERVICE:PORT, where the port has a name or a number.
func isService(s string) bool {
	name, port, found := strings.Cut(s, ":")
	if !isLabel(name) || found && port == "" || len(port) > 63 {
		return false
	}
	for i := range len(port) {
		if c := port[i]; !isAlphanumeric(c) && c != '-' {
			return false
		}
	}
	return true
}
