package explain

import (
	"cmp"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"turnout/controller"
	"turnout/routing"
)

// questions are the requests by which two tables are compared: http and https for each place of Routes, then one for each rule of Gateways, each once.
func questions(all ...*probes) iter.Seq[Query] {
	return func(yield func(Query) bool) {
		tables := make([]*routing.Table, len(all))
		for k, p := range all {
			tables[k] = p.table
		}
		for _, place := range places(tables...) {
			for _, scheme := range [...]string{"http://", "https://"} {
				if !yield(Query{URL: scheme + place}) {
					return
				}
			}
		}
		var of []Query
		for _, p := range all {
			of = append(of, p.gatewayQuestions()...)
		}
		slices.SortFunc(of, compareQueries)
		for _, q := range slices.CompactFunc(of, func(a, b Query) bool { return compareQueries(a, b) == 0 }) {
			if !yield(q) {
				return
			}
		}
	}
}

// compareQueries orders what gatewayQuestions asks.
func compareQueries(a, b Query) int {
	return cmp.Or(cmp.Compare(a.Gateway, b.Gateway), cmp.Compare(a.URL, b.URL), cmp.Compare(a.Method, b.Method), slices.Compare(a.Header, b.Header))
}

// gatewayQuestions are the requests that the rules of Gateways ask for, as far as values are not expressions.
func (p *probes) gatewayQuestions() (all []Query) {
	ports := make(map[string]*controller.GatewayPort, len(p.ports))
	for k := range p.ports {
		ports[p.ports[k].Name] = &p.ports[k]
	}
	for r := range p.table.Routes {
		l, ok := p.table.ListenerNamed(r.Listener())
		at := ports[l.Port]
		if !ok || at == nil {
			continue
		}
		all = append(all, question(r, &l, at))
	}
	return all
}

// question is a request that a rule asks for.
func question(r *routing.Route, l *routing.ListenerState, at *controller.GatewayPort) Query {
	scheme := schemeHTTP
	switch {
	case at.Protocol == protocolTCP:
		scheme = schemeTCP
	case at.Protocol == protocolUDP:
		scheme = schemeUDP
	case l.Stream:
		scheme = schemeTLS
	case l.TLS:
		scheme = schemeHTTPS
	}
	host := r.Host()
	if rest, wild := strings.CutPrefix(host, "*"); wild {
		host = "any" + rest
	}
	q := Query{Gateway: fmt.Sprintf("%s:%d", at.Gateway, at.Number), URL: fmt.Sprintf("%s://%s:%d", scheme, host, at.Number)}
	if l.Stream {
		return q
	}
	example := r.Example()
	q.Method, q.Header = example.Method, example.Fields
	q.URL += "/" + strings.TrimPrefix(r.Path(), "/")
	if len(example.Query) > 0 {
		values := url.Values{}
		for _, pair := range example.Query {
			values.Set(pair[0], pair[1])
		}
		q.URL += "?" + values.Encode()
	}
	return q
}

// kind is what a route of the table is made of; "" = a Route, or it is not known.
func (p *probes) kind(r *routing.Route) string {
	return (&inquiry{x: p.x}).kind(r)
}

// ruleFacts are those of a rule of the Gateway API.
func ruleFacts(r *routing.Route) []fact {
	out := &Route{}
	ruleWords(out, r)
	p := r.Policy()
	all := []fact{
		{"filters", strings.Join(out.Filters, "; ")}, {"mirrors", strings.Join(out.Mirrors, "; ")},
		{"request timeout", p.RequestTimeout.String()}, {"attempt timeout", p.AttemptTimeout.String()},
	}
	if out.Retry != nil {
		all = append(all, fact{"retries", fmt.Sprintf("%d of %v", out.Retry.Attempts, out.Retry.Codes)})
	}
	var backends []string
	for _, b := range out.Backends {
		backends = append(backends, strings.TrimSpace(fmt.Sprintf("%s %s", b.Name, b.Share)))
	}
	return append(all, fact{"backends", strings.Join(backends, ", ")})
}
