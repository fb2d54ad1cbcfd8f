package shard

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"unique"
)

// maxLabel is the longest label of DNS (RFC 1035 section 2.3.4).
const maxLabel = 63

// hashed is how many letters a label has of a hash. They make a label of its own out of one that is taken or too long.
const hashed = 8

// dnsName is a name that the system has given to a route. The zero value is none.
type dnsName struct {
	domain unique.Handle[string]
	label  string // "": NAMESPACE-NAME
}

func (n dnsName) text(r *Route) string {
	if n == (dnsName{}) {
		return ""
	}
	label := n.label
	if label == "" {
		label = plainLabel(r)
	}
	return label + "." + n.domain.Value()
}

// plainLabel is the label of a route if nothing is in its way.
func plainLabel(r *Route) string { return r.Namespace + "-" + r.Name }

// hashedLabel is a label for a route whose plain one is taken, too long, or has a dot. There is one for each n.
func hashedLabel(r *Route, n int) string {
	sum := sha256.Sum256([]byte(r.Namespace + "\x00" + r.Name + "\x00" + string(rune('0'+n))))
	suffix := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:5]))
	label := strings.ReplaceAll(plainLabel(r), ".", "-")
	label = strings.TrimRight(label[:min(len(label), maxLabel-1-hashed)], "-")
	return label + "-" + suffix
}

// attempts is how many hashed labels a route may have one of.
const attempts = 4

// ownLabel reports whether the system could have given a route this label.
func ownLabel(r *Route, label string) bool {
	if label == plainLabel(r) {
		return plainFits(r)
	}
	for n := range attempts {
		if label == hashedLabel(r, n) {
			return true
		}
	}
	return false
}

func plainFits(r *Route) bool {
	return len(r.Namespace)+1+len(r.Name) <= maxLabel && !strings.Contains(r.Name, ".")
}

// parseTarget reads the name that an object says the system has given to a route. Zero: it cannot have.
func parseTarget(r *Route, target string) dnsName {
	label, domain, _ := strings.Cut(target, ".")
	if label == "" || domain == "" || !ownLabel(r, label) {
		return dnsName{}
	}
	return makeName(r, label, domain)
}

func makeName(r *Route, label, domain string) dnsName {
	n := dnsName{domain: unique.Make(domain)}
	if label != plainLabel(r) {
		n.label = strings.Clone(label)
	}
	return n
}

// named is a name without the route.
type named struct {
	label  string
	domain unique.Handle[string]
}

// holder returns the route that has been given a name, nil if none has.
func (p *Planner) holder(label string, domain unique.Handle[string]) *route {
	if r := p.hashedNames[named{label, domain}]; r != nil {
		return r
	}
	// A plain label is NAMESPACE-NAME: each dash may be the one between.
	for i := range len(label) {
		if label[i] != '-' {
			continue
		}
		if ns := p.namespaces[label[:i]]; ns != nil {
			if r := ns.routes[label[i+1:]]; r != nil && r.target.label == "" && r.target.domain == domain {
				return r
			}
		}
	}
	return nil
}

// holderOf returns the route whose name a host is, nil if it is none.
func (p *Planner) holderOf(host string) *route {
	label, domain, _ := strings.Cut(host, ".")
	return p.holder(label, unique.Make(domain))
}

// nameFor returns the name that a route is given below domain: the plain one, or the first that nobody has and nobody asks for.
func (p *Planner) nameFor(r *route, domain string) dnsName {
	handle := unique.Make(domain)
	free := func(label string) bool {
		owner := p.holder(label, handle)
		return (owner == nil || owner == r) && !p.requested(r, label+"."+domain)
	}
	if plain := plainLabel(&r.Route); plainFits(&r.Route) && free(plain) {
		return dnsName{domain: handle}
	}
	for n := range attempts {
		if label := hashedLabel(&r.Route, n); free(label) {
			return dnsName{domain: handle, label: label}
		}
	}
	return dnsName{}
}

// setTarget gives a route its name.
func (p *Planner) setTarget(r *route, n dnsName) {
	if r.target == n {
		return
	}
	p.dropTarget(r)
	r.target = n
	if n.label != "" {
		p.hashedNames[named{n.label, n.domain}] = r
	}
}

// dropTarget takes the name of a route from it.
func (p *Planner) dropTarget(r *route) {
	if key := (named{r.target.label, r.target.domain}); r.target.label != "" && p.hashedNames[key] == r {
		delete(p.hashedNames, key)
	}
	r.target = dnsName{}
}
