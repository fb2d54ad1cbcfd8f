package balancer

import "hash/maphash"

// endpoints are the endpoints of a registry, found by their keys. A key has 72 bytes and stands in its Endpoint already, so the map has
// the hash of it alone: there are ten thousands of them.
type endpoints struct {
	hash  func(key endpointKey) uint64
	first map[uint64]*Endpoint // by the hash of the key; others of the same hash follow by Endpoint.next
	count int
}

func newEndpoints() endpoints {
	seed := maphash.MakeSeed()
	return endpoints{hash: func(key endpointKey) uint64 { return maphash.Comparable(seed, key) }, first: make(map[uint64]*Endpoint)}
}

// find returns the endpoint of a key, nil if there is none.
func (es *endpoints) find(key *endpointKey) *Endpoint {
	e := es.first[es.hash(*key)]
	for e != nil && e.key != *key {
		e = e.next
	}
	return e
}

// insert adds an endpoint whose key no other has.
func (es *endpoints) insert(e *Endpoint) {
	at := es.hash(e.key)
	e.next, es.first[at] = es.first[at], e
	es.count++
}

// remove takes out an endpoint that was inserted.
func (es *endpoints) remove(e *Endpoint) {
	at := es.hash(e.key)
	es.count--
	if es.first[at] == e {
		if es.first[at] = e.next; e.next == nil {
			delete(es.first, at)
		}
		return
	}
	before := es.first[at]
	for before.next != e {
		before = before.next
	}
	before.next = e.next
}
