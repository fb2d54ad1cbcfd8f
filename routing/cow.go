package routing

// A cow is a hash table that is copied on write: an edit copies the directory and
// the buckets it changes, and shares all others with the table it came from. It
// grows by splitting single buckets (extendible hashing), so no edit has to rebuild
// it, and a lookup is one step through the directory and one through a bucket.
//
// The upper bits of a hash choose the place in the directory, the lower ones the
// slot to begin with. Two buckets of neighbouring places are the same one as long
// as it has not been split.

const (
	bucketSlots = 128
	bucketFill  = 96 // slots in use from which on a bucket is split
)

type slot[E any] struct {
	hash uint64
	item *E // nil = free, and the end of a search
}

type bucket[E any] struct {
	slots *[bucketSlots]slot[E]
	depth uint8 // upper bits of the hash that all items share
	count uint8
}

type cow[E any] struct {
	dir   []bucket[E] // 1<<depth places
	depth uint8
	count int
}

func newCow[E any]() cow[E] {
	return cow[E]{dir: []bucket[E]{{slots: new([bucketSlots]slot[E])}}}
}

// place returns the index in the directory for a hash.
func (c *cow[E]) place(hash uint64) uint64 { return hash >> 1 >> ((63 - c.depth) & 63) }

// get returns the item of a hash for which same is true, nil if there is none.
func (c *cow[E]) get(hash uint64, same func(*E) bool) *E {
	slots := c.dir[c.place(hash)].slots
	for i := hash; ; i++ {
		s := &slots[i%bucketSlots]
		if s.item == nil {
			return nil
		}
		if s.hash == hash && same(s.item) {
			return s.item
		}
	}
}

// each calls yield for every item until it returns false, in no order.
func (c *cow[E]) each(yield func(*E) bool) {
	for i := 0; i < len(c.dir); i += 1 << (c.depth - c.dir[i].depth) {
		for k := range c.dir[i].slots {
			if item := c.dir[i].slots[k].item; item != nil && !yield(item) {
				return
			}
		}
	}
}

// edit is a cow that is being changed. The cow it came from never is.
type edit[E any] struct {
	cow[E]
	fresh  bool                               // nothing is shared with another cow
	copied bool                               // the directory is not shared
	owned  map[*[bucketSlots]slot[E]]struct{} // buckets not shared, unless fresh
}

// edit returns an edit that begins with the items of c.
func (c cow[E]) edit() *edit[E] {
	return &edit[E]{cow: c, owned: make(map[*[bucketSlots]slot[E]]struct{})}
}

func freshEdit[E any]() *edit[E] { return &edit[E]{cow: newCow[E](), fresh: true} }

// result ends the edit and returns the changed cow. One that has shrunk to a
// fraction of its directory is built anew.
func (e *edit[E]) result() cow[E] {
	const smallest, sparse = 64, 4
	if len(e.dir) < smallest || e.count >= len(e.dir)*sparse {
		return e.cow
	}
	f := freshEdit[E]()
	for i := 0; i < len(e.dir); i += 1 << (e.depth - e.dir[i].depth) {
		for _, s := range e.dir[i].slots {
			if s.item != nil {
				f.put(s.hash, s.item, func(*E) bool { return false })
			}
		}
	}
	return f.cow
}

// put adds an item, in the place of the one for which same is true.
func (e *edit[E]) put(hash uint64, item *E, same func(*E) bool) {
	for {
		b := e.own(hash)
		i := hash
		for ; b.slots[i%bucketSlots].item != nil; i++ {
			if s := &b.slots[i%bucketSlots]; s.hash == hash && same(s.item) {
				s.item = item
				return
			}
		}
		if b.count < bucketFill {
			b.slots[i%bucketSlots] = slot[E]{hash: hash, item: item}
			b.count++
			e.count++
			e.set(hash, b)
			return
		}
		e.split(hash)
	}
}

// remove takes the item away for which same is true.
func (e *edit[E]) remove(hash uint64, same func(*E) bool) {
	if e.get(hash, same) == nil {
		return
	}
	old := e.own(hash)
	b := e.bucket(old.depth)
	for _, s := range old.slots {
		if s.item != nil && (s.hash != hash || !same(s.item)) {
			b.add(s)
		}
	}
	e.count--
	e.set(hash, b)
}

// bucket returns a new bucket that the edit may change.
func (e *edit[E]) bucket(depth uint8) bucket[E] {
	b := bucket[E]{slots: new([bucketSlots]slot[E]), depth: depth}
	if !e.fresh {
		e.owned[b.slots] = struct{}{}
	}
	return b
}

// add puts s, which is not in b, into b. There is a free slot.
func (b *bucket[E]) add(s slot[E]) {
	i := s.hash
	for b.slots[i%bucketSlots].item != nil {
		i++
	}
	b.slots[i%bucketSlots] = s
	b.count++
}

// own returns the bucket of a hash, copied if it is shared.
func (e *edit[E]) own(hash uint64) bucket[E] {
	b := e.dir[e.place(hash)]
	if e.fresh {
		return b
	}
	if !e.copied {
		e.dir = append([]bucket[E](nil), e.dir...)
		e.copied = true
	}
	if _, mine := e.owned[b.slots]; mine {
		return b
	}
	n := e.bucket(b.depth)
	*n.slots, n.count = *b.slots, b.count
	e.set(hash, n)
	return n
}

// set stores b at all places of the directory that belong to it.
func (e *edit[E]) set(hash uint64, b bucket[E]) {
	size := uint64(1) << (e.depth - b.depth)
	first := e.place(hash) &^ (size - 1)
	for i := range size {
		e.dir[first+i] = b
	}
}

// split divides the bucket of a hash by the next bit. If it has only one place in
// the directory, that is doubled first.
func (e *edit[E]) split(hash uint64) {
	old := e.dir[e.place(hash)]
	if old.depth == e.depth {
		dir := make([]bucket[E], 2*len(e.dir))
		for i, b := range e.dir {
			dir[2*i], dir[2*i+1] = b, b
		}
		e.dir, e.copied = dir, true
		e.depth++
	}
	low, high := e.bucket(old.depth+1), e.bucket(old.depth+1)
	bit := uint64(1) << (63 - old.depth)
	for _, s := range old.slots {
		switch {
		case s.item == nil:
		case s.hash&bit == 0:
			low.add(s)
		default:
			high.add(s)
		}
	}
	e.set(hash&^bit, low)
	e.set(hash|bit, high)
}
