// Package share divides a bounded resource among namespaces, so that no tenant can use it up.
package share

// Pool is a resource of a fixed size, such as bytes of kept request bodies or a number of copies. A
// namespace may hold at most as much as would still be free afterwards. Alone it gets half, with
// another one a third. When n namespaces take all they can, one part in n+1 is left for the next.
// (This is the dynamic threshold of shared-memory switches: Choudhury and Hahne, IEEE/ACM
// Transactions on Networking 6(2), 1998, with a factor of 1.)
//
// A Pool belongs to one goroutine or event loop at a time. The zero value has size 0 and grants
// nothing.
type Pool struct {
	size int
	used int
	held map[string]int // by namespace; a namespace that holds nothing has no entry
}

// NewPool returns a pool of size units.
func NewPool(size int) Pool { return Pool{size: size, held: make(map[string]int)} }

// Take grants n units to a namespace and returns true, or grants none. n must be positive. The
// caller must return exactly n units with Give.
func (p *Pool) Take(namespace string, n int) bool {
	held := p.held[namespace]
	if held+n > p.size-p.used-n {
		return false
	}
	p.used += n
	p.held[namespace] = held + n
	return true
}

// Give returns n units of a namespace to the pool. It panics if the namespace holds fewer, because
// every later decision of the pool would be wrong.
func (p *Pool) Give(namespace string, n int) {
	held := p.held[namespace] - n
	switch {
	case held < 0:
		panic("share: a namespace gives back more than it holds")
	case held == 0:
		delete(p.held, namespace)
	default:
		p.held[namespace] = held
	}
	p.used -= n
}

// Used returns the number of units held by all namespaces.
func (p *Pool) Used() int { return p.used }

// Held returns the number of units held by a namespace.
func (p *Pool) Held(namespace string) int { return p.held[namespace] }

// Most returns the number of units that Take would grant to a namespace now, at least 0.
func (p *Pool) Most(namespace string) int {
	return max((p.size-p.used-p.held[namespace])/2, 0)
}

// Reset returns all units of all namespaces to the pool.
func (p *Pool) Reset() {
	clear(p.held)
	p.used = 0
}
