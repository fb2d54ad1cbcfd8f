package routing

import "hash/maphash"

// common is a policy and how many routes of a table have it. It is immutable: another number is another object.
type common struct {
	policy *Policy
	users  int
}

// policy returns a policy of this content: that of other routes of the table, if some have it.
func (b *builder) policy(content *Policy) *Policy {
	if c := b.policies.findItem(maphash.Comparable(b.seed, *content), func(c *common) bool { return *c.policy == *content }); c != nil {
		return c.policy
	}
	own := *content
	return &own
}

// countPolicy counts n more routes with p. What is there with the same content stays the one that others get.
func (b *builder) countPolicy(p *Policy, n int) {
	hash, same := maphash.Comparable(b.seed, *p), func(c *common) bool { return *c.policy == *p }
	if c := b.policies.findItem(hash, same); c != nil {
		p, n = c.policy, n+c.users
	}
	if n == 0 {
		b.policies.remove(hash, same)
		return
	}
	b.policies.putItem(hash, &common{p, n}, same)
}
