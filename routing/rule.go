package routing

import (
	"strconv"
	"strings"
	"time"
	"unique"

	"turnout/balancer"
	"turnout/internal/expression"
)

// RuleSpec is one rule as plain data: the requests of a host that match go to these targets, treated by this policy. The table
// is made of rules, whatever kinds of object they come from. One object may have many, distinguished by RouteKey.Rule; an OpenShift Route is
// one, see RouteSpec. Nobody may change its slices once Compile or Apply has them.
type RuleSpec struct {
	RouteKey
	Host        string      // lower case; "" = the rule is known but serves nothing
	Wildcard    bool        // the first label of Host stands for any label
	Labels      bool        // with Wildcard: for several labels, too; Host without a dot: any host
	Termination Termination // of the TLS of clients: with Insecure, on which ports the rule is served
	Insecure    InsecurePolicy
	Listener    string // the listener that serves the rule; "" = the default HTTP and HTTPS ports
	Match       Match
	Certificate *CertificateSpec // nil = default certificate; looked at with TermEdge and TermReencrypt only
	ClientAuth  *ClientAuthSpec  // what clients of the host have to show, looked at so too; nil = as the listener, or the router, has it for all
	Policy      Policy           // what is done to requests and responses
	CookieName  string           // of the sticky cookie; "" = no stickiness. It is not in Policy, which many rules have in common
	// PoolKey names the pool of Targets among those of the object; "" = the main pool. Rules of an
	// object with the same PoolKey share the pool, so they have the same Pool and Targets.
	PoolKey  string
	Pool     balancer.PoolConfig
	Targets  []balancer.Target
	Backends []BackendSpec // not empty: instead of Pool and Targets, see BackendSpec
	Mirrors  []MirrorSpec  // where copies of requests go besides

	// Created is when the object was made, which decides between rules that match alike, see Match. The zero value comes before all others.
	Created time.Time
}

// Match says which requests of a host a rule takes: those of a path for which all conditions hold. The zero value takes all.
//
// Of several rules that take a request one with an exact path comes first, then one with an expression, then the one with the
// longest path; of equal paths one with a method, then the one with most headers, then most query parameters. Then the
// oldest object comes first, of equally old ones the first by namespace, name and rule. Rules without a time of creation, as those of OpenShift
// Routes, are in the order of the spec. A rule that the conditions exclude leaves the request to the next one.
type Match struct {
	Path    PathMatch
	Method  string       // "" = any; letter case matters (RFC 9110 section 9.1)
	Headers []ValueMatch // of fields; names ignore letter case. Of several lines of a name one must hold
	Query   []ValueMatch // of parameters; names are exact. Of several of a name the first counts
	Cookies []ValueMatch // by exact name; any cookie of the name may match. They count as headers
}

// PathMatch is a path of the kind it says. The zero value takes all paths.
type PathMatch struct {
	Kind  PathKind
	Value string

	// Expression is Value, compiled; PathExpression only. nil = compiled with the table.
	Expression *expression.Expression
}

// PathKind is how a path is compared with that of a request, which is not decoded. The zero value is PathStored.
type PathKind uint8

// The kinds.
const (
	PathStored     PathKind = iota // as OpenShift Routes have it: "/p" takes "/p" and what is below it, "/p/" what begins with these bytes
	PathPrefix                     // by segments; slashes at the end do not matter
	PathExact                      // the same bytes
	PathExpression                 // a regular expression (RE2) for the whole path
)

// ValueMatch is a condition on the value of a field or parameter, which must be there. Of several conditions on
// one name the first counts.
type ValueMatch struct {
	Name       string
	Value      string
	Expression bool // Value is a regular expression (RE2) for the whole value; otherwise the values are the same bytes

	// Compiled is Value, compiled, if Expression is set. nil = compiled with the table.
	Compiled *expression.Expression
}

// Rule returns s as a rule.
func (s *RouteSpec) Rule() RuleSpec {
	return RuleSpec{
		RouteKey: s.RouteKey, Host: s.Host, Wildcard: s.Wildcard, Match: Match{Path: PathMatch{Value: s.Path}},
		Termination: s.Termination, Insecure: s.Insecure, Certificate: s.Certificate, Policy: s.Policy, CookieName: s.CookieName, Pool: s.Pool(), Targets: s.Targets,
	}
}

// served returns what makes a route of its own of s.
func (s *RuleSpec) served() served {
	return served{
		key: s.RouteKey, host: s.Host, path: s.Match.Path.Value, kind: s.Match.Path.Kind, wildcard: s.Wildcard, labels: s.Labels, listener: s.Listener,
		termination: s.Termination, insecure: s.Insecure, asked: s.asked(), cookie: s.CookieName,
	}
}

// asked returns what a rule asks of a request besides a path, and its age, as a text that two rules have in common if they ask
// the same in the same order; the zero value if there is nothing of it.
func (s *RuleSpec) asked() unique.Handle[string] {
	m := &s.Match
	if m.Method == "" && len(m.Headers) == 0 && len(m.Query) == 0 && len(m.Cookies) == 0 && s.Created.IsZero() {
		return unique.Handle[string]{}
	}
	var b strings.Builder
	write := func(s string) {
		b.WriteString(s)
		b.WriteByte(0)
	}
	write(m.Method)
	write(strconv.FormatInt(s.created(), 36))
	for i, list := range [...][]ValueMatch{m.Headers, m.Query, m.Cookies} {
		for _, v := range list {
			b.WriteByte('h' + byte(i))
			if v.Expression {
				b.WriteByte('~')
			}
			write(v.Name)
			write(v.Value)
		}
	}
	return unique.Make(b.String())
}

// created returns a number that is greater for younger objects, 0 if nothing is known.
func (s *RuleSpec) created() int64 {
	if s.Created.IsZero() {
		return 0
	}
	return max(s.Created.UnixNano(), 1)
}
