package routing

import "slices"

// A cow is a hash table that is copied on write: an edit copies the buckets it
// changes and the pages of the directory that lead to them, and shares all others
// with the table it came from. It grows by splitting single buckets (extendible
// hashing), so an edit that adds one item does not rebuild it.
//
// The upper bits of a hash choose the place in the directory, the lower ones the
// slot to begin with. Buckets of adjacent places are the same one as long as it
// has not been split. What an edit allocates counts more than what it copies: in a
// large heap each byte brings the next collection nearer.

const (
	bucketSlots = 128
	bucketFill  = 96  // slots in use from which on a bucket is split
	pagePlaces  = 128 // places of one page of the directory
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

// page is a part of the directory.
type page[E any] [pagePlaces]bucket[E]

type cow[E any] struct {
	dir   []*page[E] // 1<<depth places
	depth uint8
	count int
}

func newCow[E any]() cow[E] {
	first := new(page[E])
	first[0].slots = new([bucketSlots]slot[E])
	return cow[E]{dir: []*page[E]{first}}
}

// places returns the size of the directory.
func (c *cow[E]) places() uint64 { return 1 << c.depth }

// place returns the place in the directory for a hash.
func (c *cow[E]) place(hash uint64) uint64 { return hash >> 1 >> ((63 - c.depth) & 63) }

// at returns the bucket of a place.
func (c *cow[E]) at(place uint64) *bucket[E] { return &c.dir[place/pagePlaces][place%pagePlaces] }

// buckets calls yield with each bucket once.
func (c *cow[E]) buckets(yield func(*bucket[E]) bool) {
	for place := uint64(0); place < c.places(); {
		b := c.at(place)
		if !yield(b) {
			return
		}
		place += 1 << (c.depth - b.depth)
	}
}

// findItem returns the item of a hash for which same is true, nil if there is none.
func (c *cow[E]) findItem(hash uint64, same func(*E) bool) *E {
	slots := c.at(c.place(hash)).slots
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
	for b := range c.buckets {
		for i := range b.slots {
			if item := b.slots[i].item; item != nil && !yield(item) {
				return
			}
		}
	}
}

// edit is a cow that is being changed. The cow it came from never is.
type edit[E any] struct {
	cow[E]
	fresh  bool                               // nothing is shared with another cow
	copied bool                               // the list of pages is not shared
	pages  map[*page[E]]struct{}              // pages not shared, unless fresh
	owned  map[*[bucketSlots]slot[E]]struct{} // buckets not shared, unless fresh
}

// edit returns an edit that begins with the items of c.
func (c cow[E]) edit() *edit[E] {
	return &edit[E]{cow: c, pages: make(map[*page[E]]struct{}), owned: make(map[*[bucketSlots]slot[E]]struct{})}
}

func freshEdit[E any]() *edit[E] { return &edit[E]{cow: newCow[E](), fresh: true} }

// result ends the edit and returns the changed cow. One that has shrunk to a
// fraction of its directory is built anew.
func (e *edit[E]) result() cow[E] {
	const smallest, sparse = 64, 4
	if e.places() < smallest || e.count >= int(e.places())*sparse {
		return e.cow
	}
	f := freshEdit[E]()
	for b := range e.buckets {
		for _, s := range b.slots {
			if s.item != nil {
				f.putItem(s.hash, s.item, func(*E) bool { return false })
			}
		}
	}
	return f.cow
}

// putItem adds an item, in the place of the one for which same is true.
func (e *edit[E]) putItem(hash uint64, item *E, same func(*E) bool) {
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
			e.setBucket(hash, b)
			return
		}
		e.split(hash)
	}
}

// remove takes the item away for which same is true.
func (e *edit[E]) remove(hash uint64, same func(*E) bool) {
	if e.findItem(hash, same) == nil {
		return
	}
	old := e.own(hash)
	b := e.bucket(old.depth)
	for _, s := range old.slots {
		if s.item != nil && (s.hash != hash || !same(s.item)) {
			b.addSlot(s)
		}
	}
	e.count--
	e.setBucket(hash, b)
}

// bucket returns a new bucket that the edit may change.
func (e *edit[E]) bucket(depth uint8) bucket[E] {
	b := bucket[E]{slots: new([bucketSlots]slot[E]), depth: depth}
	if !e.fresh {
		e.owned[b.slots] = struct{}{}
	}
	return b
}

// addSlot puts s, which is not in b, into b. There is a free slot.
func (b *bucket[E]) addSlot(s slot[E]) {
	i := s.hash
	for b.slots[i%bucketSlots].item != nil {
		i++
	}
	b.slots[i%bucketSlots] = s
	b.count++
}

// own returns the bucket of a hash, copied if it is shared.
func (e *edit[E]) own(hash uint64) bucket[E] {
	b := *e.at(e.place(hash))
	if e.fresh {
		return b
	}
	if _, mine := e.owned[b.slots]; mine {
		return b
	}
	n := e.bucket(b.depth)
	*n.slots, n.count = *b.slots, b.count
	e.setBucket(hash, n)
	return n
}

// setBucket stores b at all places of the directory that belong to it.
func (e *edit[E]) setBucket(hash uint64, b bucket[E]) {
	size := uint64(1) << (e.depth - b.depth)
	first := e.place(hash) &^ (size - 1)
	for i := range size {
		e.ownPage((first + i) / pagePlaces)
		*e.at(first + i) = b
	}
}

// ownPage copies a page of the directory if it is shared.
func (e *edit[E]) ownPage(i uint64) {
	if e.fresh {
		return
	}
	if !e.copied {
		e.dir, e.copied = slices.Clone(e.dir), true
	}
	if _, mine := e.pages[e.dir[i]]; !mine {
		p := *e.dir[i]
		e.dir[i] = &p
		e.pages[&p] = struct{}{}
	}
}

// split divides the bucket of a hash by the next bit. If it has only one place in
// the directory, that is doubled first.
func (e *edit[E]) split(hash uint64) {
	old := *e.at(e.place(hash))
	if old.depth == e.depth {
		e.double()
	}
	low, high := e.bucket(old.depth+1), e.bucket(old.depth+1)
	bit := uint64(1) << (63 - old.depth)
	for _, s := range old.slots {
		switch {
		case s.item == nil:
		case s.hash&bit == 0:
			low.addSlot(s)
		default:
			high.addSlot(s)
		}
	}
	e.setBucket(hash&^bit, low)
	e.setBucket(hash|bit, high)
}

// double gives each bucket twice as many places in the directory.
func (e *edit[E]) double() {
	old := e.cow
	e.depth++
	e.dir, e.copied = make([]*page[E], (e.places()+pagePlaces-1)/pagePlaces), true
	for i := range e.dir {
		e.dir[i] = new(page[E])
		if !e.fresh {
			e.pages[e.dir[i]] = struct{}{}
		}
	}
	for place := range e.places() {
		*e.at(place) = *old.at(place / 2)
	}
}
