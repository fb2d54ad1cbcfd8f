package balancer

// Algorithm is the rule by which a Pool chooses among its servers. The zero value
// is Random.
type Algorithm uint8

// The algorithms. Servers of weight 0 take part in none of them.
const (
	Random           Algorithm = iota // two weighted draws, the less loaded server is taken
	RoundRobin                        // smooth weighted round robin
	LeastConn                         // fewest running requests relative to weight, round robin among equals
	Source                            // hash of the client address modulo the total weight
	SourceConsistent                  // hash of the client address, few clients move when the set changes
)

var algorithmNames = [...]string{"random", "roundrobin", "leastconn", "source", "source-consistent"}

// String returns the word of the balance annotation; SourceConsistent has none of
// its own there and is called "source-consistent".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return "unknown"
}

// ParseAlgorithm returns the algorithm of a word of the balance annotation or of
// ROUTER_LOAD_BALANCE_ALGORITHM: exactly roundrobin, leastconn, source or random,
// in lower case. The bool is false for any other word. "source" is Source; a
// passthrough route uses SourceConsistent instead (see Choice).
func ParseAlgorithm(s string) (Algorithm, bool) {
	for a := Random; a <= Source; a++ {
		if algorithmNames[a] == s {
			return a, true
		}
	}
	return Random, false
}

// Choice is what the algorithm of a route depends on.
type Choice struct {
	Passthrough bool   // the route is passthrough
	Annotation  string // value of the balance annotation, "" = none
	Active      int    // services of weight > 0, with or without endpoints
	Default     string // ROUTER_LOAD_BALANCE_ALGORITHM
	TCPDefault  string // ROUTER_TCP_BALANCE_SCHEME
}

// Algorithm returns the algorithm for a route: a valid annotation first, then
// RoundRobin for several active services, then the first valid default, then
// Random, for passthrough SourceConsistent.
func (c Choice) Algorithm() Algorithm {
	a := c.choose()
	if c.Passthrough && a == Source {
		return SourceConsistent
	}
	return a
}

func (c Choice) choose() Algorithm {
	if a, ok := ParseAlgorithm(c.Annotation); ok {
		return a
	}
	if c.Active > 1 {
		return RoundRobin
	}
	if c.Passthrough {
		if a, ok := ParseAlgorithm(c.TCPDefault); ok {
			return a
		}
	}
	if a, ok := ParseAlgorithm(c.Default); ok {
		return a
	}
	if c.Passthrough {
		return Source
	}
	return Random
}
