package convert

import (
	"regexp"
	"strings"
	"testing"

	"turnout/controller/gateway/convert"
	"turnout/deploy/examples"
)

// TestExamples: the examples are served by their converted objects as by themselves.
func TestExamples(t *testing.T) {
	r := start(t, examples.Files(), convert.Options{})
	if n := r.compare(r.requests()); n < 100 {
		t.Errorf("%d requests were compared", n)
	}
}

// requests are some that come to each item, or go past it.
func (r *rig) requests() (list []request) {
	seen := make(map[string]bool)
	for i := range r.items {
		it := &r.items[i]
		host := it.Host
		switch {
		case host == "":
			host = "nobody.example.org"
		case it.Route.Spec.WildcardPolicy == "Subdomain":
			_, domain, _ := strings.Cut(host, ".")
			host = "some." + domain
		}
		bare := strings.TrimRight(it.Path.Value, "/")
		for _, path := range []string{bare, bare + "/", bare + "/x", bare + "x", bare + "/x/y?q=1&q=%2F", bare + "//x", "/", "/other", it.Path.Value + "z"} {
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			for _, scheme := range []string{"http", "https"} {
				for _, fields := range [][]string{{"X-Forwarded-For: 10.0.0.1", "Origin: https://a.example"}, {"X-Canary: always"}, {"Cookie: a=b; canary=always"}}[:1+2*min(1, len(it.Rules)-1)] {
					q := request{method: "GET", scheme: scheme, host: host, path: path, fields: fields}
					if !seen[q.String()] {
						seen[q.String()] = true
						list = append(list, q)
					}
				}
			}
		}
	}
	return list
}

// compare sends requests to both sides and says which come to something else. It returns how many it has sent.
func (r *rig) compare(list []request) int {
	r.Helper()
	for i := range list {
		q := &list[i]
		before, after := r.plainly(r.before(q)), r.plainly(r.after(q))
		if before != after && !r.named(q, &before, &after) {
			r.Errorf("%s:\nbefore %+v\nafter  %+v", q, before, after)
			for i := range r.items {
				if it := &r.items[i]; r.has(&it.Of, q.host) {
					r.Logf("ITEM %s %s %q %s %s %v", it.Of.String(), it.Host, it.Path.Value, it.Spec.Termination, it.Spec.Insecure, it.Route.Annotations)
				}
			}
		}
	}
	return len(list)
}

// named reports whether the report names what another answer to a request comes from.
func (r *rig) named(q *request, before, after *got) bool {
	nobody := before.Service == "" && (before.Status == 503 || before.Status == 404)
	if nobody && (after.Status == 404 || after.Refused) {
		return true // it says so of all objects
	}
	rewritten := *after
	rewritten.Path = before.Path
	bare, _, _ := strings.Cut(q.path, "?")
	for i := range r.report.Notes {
		n := &r.report.Notes[i]
		if n.Of == nil {
			continue
		}
		switch {
		case strings.HasPrefix(n.Field, "host *.") && nobody && strings.HasSuffix(q.host, n.Field[len("host *"):]):
			return true // it has several more labels
		case n.Field == "any host" && nobody:
			return true // hosts with routes have what they lack of objects for any host
		case strings.HasSuffix(n.Field, "/rewrite-target") && r.has(n.Of, q.host) && rewritten == *before:
			return true
		case n.Field == "spec.tls.insecureEdgeTerminationPolicy" && r.has(n.Of, q.host) && q.scheme == "http" && after.Status == 302:
			return true
		case n.Field == "spec.path" && r.has(n.Of, q.host) && strings.Contains(n.Text+" ", " "+bare+" "), n.Field == "spec.path" && r.has(n.Of, q.host) && strings.Contains(n.Text, " "+bare+","):
			return true
		}
	}
	return false
}

// has reports whether an object has a rule for a host.
func (r *rig) has(of *convert.Source, host string) bool {
	for i := range r.items {
		it := &r.items[i]
		_, domain, _ := strings.Cut(it.Host, ".")
		if it.Of.String() == of.String() && (it.Host == host || it.Route.Spec.WildcardPolicy == "Subdomain" && strings.HasSuffix(host, "."+domain)) {
			return true
		}
	}
	return false
}

// plainly is an answer without what is another by chance, or because the report says so: the number of the port, the cookie, and which of several Services it is.
func (r *rig) plainly(g got) got {
	g.Header = cookie.ReplaceAllString(g.Header, "")
	g.Seen = port.ReplaceAllString(g.Seen, "")
	for i := range r.items {
		spec := &r.items[i].Route.Spec
		for j := range spec.AlternateBackends {
			if g.Service == spec.AlternateBackends[j].Name {
				g.Service = spec.To.Name
			}
		}
	}
	return g
}

var (
	cookie = regexp.MustCompile(`Set-Cookie: [^|]*; HttpOnly(; Secure; SameSite=None)?; `)
	port   = regexp.MustCompile(`X-Forwarded-Port: [0-9]+; `)
)

// TestShares: weights are kept.
func TestShares(t *testing.T) {
	r := start(t, examples.Files(), convert.Options{})
	q := &request{method: "GET", scheme: "http", host: "route-alternate-service.example.com", path: "/"}
	before, after := map[string]int{}, map[string]int{}
	for range 40 {
		before[r.before(q).Service]++
		after[r.after(q).Service]++
	}
	for name, want := range map[string]int{"service-name": 20, "service-name2": 10, "service-name3": 10} {
		if n := after[name]; before[name] != want || n < want-4 || n > want+4 {
			t.Errorf("%s: %d requests before, %d after, of 40 %d are its share", name, before[name], n, want)
		}
	}
}
