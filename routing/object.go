package routing

import (
	"hash/maphash"
	"sync/atomic"

	"turnout/internal/ratelimit"
)

// object is the state that all rules of one API object share. An object with several paths, hosts
// or canaries becomes several rules, and a limit of the object applies to their sum. It outlives
// changes of the object, by namespace, name and UID.
type object struct {
	key   objectKey
	open  atomic.Int64
	rates atomic.Pointer[ratelimit.Table] // nil until a rule has a limit
}

// objectKey is the identity of an object: a RouteKey without its rule.
type objectKey struct{ namespace, name, uid string }

// objectUse is an object and the number of rules of a table that it has. It is immutable.
type objectUse struct {
	object *object
	users  int
}

// object returns the object of a rule. It reuses the object of other rules of the table, or of
// prev, which may be nil; otherwise it makes one.
func (b *builder) object(key RouteKey, prev *Table) *object {
	of := objectKey{key.Namespace, key.Name, key.UID}
	if o := findObject(&b.objects.cow, b.seed, of); o != nil {
		return o.object
	}
	if prev != nil {
		if o := findObject(&prev.objects, prev.hosts.seed, of); o != nil {
			return o.object
		}
	}
	return &object{key: of}
}

// limitRates returns the counters of the object's rate limits.
func (o *object) limitRates(memory *ratelimit.Memory) *ratelimit.Table {
	if o.rates.Load() == nil {
		o.rates.CompareAndSwap(nil, memory.NewTable(o.key.namespace))
	}
	return o.rates.Load()
}

func findObject(all *cow[objectUse], seed maphash.Seed, key objectKey) *objectUse {
	return all.findItem(maphash.Comparable(seed, key), func(u *objectUse) bool { return u.object.key == key })
}

// countObject adds n to the number of rules of o.
func (b *builder) countObject(o *object, n int) {
	hash, same := maphash.Comparable(b.seed, o.key), func(u *objectUse) bool { return u.object.key == o.key }
	if u := b.objects.findItem(hash, same); u != nil {
		n += u.users
	}
	if n == 0 {
		b.objects.remove(hash, same)
		return
	}
	b.objects.putItem(hash, &objectUse{o, n}, same)
}
