package balancer

import (
	"hash/maphash"
	"math/bits"
)

// member is the part of a target that the servers of all pools share: everything but the weight.
// It is immutable.
type member struct {
	names
	cookie   cookie // sticky cookie value
	endpoint *Endpoint
	next     *member // of the same endpoint; guarded by Registry.mu
}

// is reports whether m is of t, whose endpoint it has.
func (m *member) is(t *Target) bool {
	return m.noCheck == t.NoCheck && m.id() == t.ID && m.pod() == t.Pod && m.service() == t.Service
}

// equal reports whether m is of t for a namespace.
func (m *member) equal(t *Target, namespace string) bool {
	return m.is(t) && m.endpoint.key() == t.key(namespace)
}

// roster is a list of targets, once however many pools have it: thousands of routes may lead to the same service, and each of
// its pods that comes or goes is a new roster and not thousands. It does not change, but for what Registry.mu guards.
type roster struct {
	namespace string    // see PoolConfig.Namespace
	members   []*member // in the order of the targets
	weights   []uint32  // parallel to members
	all       *choices  // among all of them

	sum    uint64  // of the targets
	next   *roster // of the same sum; guarded by Registry.mu
	groups *group  // the first of those of pools that have it; guarded by Registry.mu

	index *rosterIndex // nil for few members
}

// rosterIndex is a hash table of the members of a roster by their cookies. It is made with the
// roster: an event loop that chooses a server must not pay for the number of servers.
type rosterIndex struct {
	seed  maphash.Seed
	slots []int32 // places in the roster plus one, 0 = empty; at most half of them are used
}

// newRosterIndex returns the index of members, nil for few.
func newRosterIndex(members []*member) *rosterIndex {
	if len(members) <= fewServers {
		return nil
	}
	x := &rosterIndex{seed: maphash.MakeSeed(), slots: make([]int32, 1<<bits.Len(uint(2*len(members)-1)))}
	for place, m := range members {
		at := x.home(&m.cookie)
		for x.slots[at] != 0 {
			at = (at + 1) & (len(x.slots) - 1)
		}
		x.slots[at] = int32(place) + 1
	}
	return x
}

// home returns the slot at which the search for a cookie begins.
func (x *rosterIndex) home(c *cookie) int {
	return int(maphash.Bytes(x.seed, c[:])) & (len(x.slots) - 1)
}

// find returns the place in the roster of the member m, or with a nil m the place of the member
// with cookie c, -1 if there is none. c is the cookie of m.
func (ro *roster) find(c *cookie, m *member) int {
	x := ro.index
	if x == nil {
		for i, o := range ro.members {
			if o == m || m == nil && o.cookie == *c {
				return i
			}
		}
		return -1
	}
	for at := x.home(c); x.slots[at] != 0; at = (at + 1) & (len(x.slots) - 1) {
		place := int(x.slots[at]) - 1
		if o := ro.members[place]; o == m || m == nil && o.cookie == *c {
			return place
		}
	}
	return -1
}

// place returns the place of m in the roster, -1 if it has none.
func (ro *roster) place(m *member) int { return ro.find(&m.cookie, m) }

// placeNear is place with a guess, which is checked first.
func (ro *roster) placeNear(m *member, guess int) int {
	if guess >= 0 && guess < len(ro.members) && ro.members[guess] == m {
		return guess
	}
	return ro.place(m)
}

// byCookie returns the place of the member with a sticky cookie value, -1 if there is none.
func (ro *roster) byCookie(value []byte) int {
	c, ok := parseCookie(value)
	if !ok {
		return -1
	}
	return ro.find(&c, nil)
}

// has reports whether ro is what targets lead to in a namespace, all of them.
func (ro *roster) has(namespace string, targets []Target) bool {
	if len(ro.members) != len(targets) || ro.namespace != namespace {
		return false
	}
	for i := range targets {
		if ro.weights[i] != clampWeight(targets[i].Weight) || !ro.members[i].equal(&targets[i], namespace) {
			return false
		}
	}
	return true
}

// listed is a list of targets as somebody has it. A list that is given again is known by its place in memory, so that not every
// pool has to look at every target.
type listed struct {
	first *Target
	n     int
}

// From how many targets on a list is remembered, and how many targets the lists have that are.
const (
	rememberFrom = 16
	remembered   = 1 << 16
)

// roster finds or makes the roster of targets for a namespace. It is not used by any group yet. r.mu is held.
func (r *Registry) roster(namespace string, targets []Target) *roster {
	if len(targets) < rememberFrom {
		return r.findRoster(namespace, targets)
	}
	key := listed{&targets[0], len(targets)}
	if ro := r.lists[key]; ro != nil && ro.groups != nil && ro.namespace == namespace {
		return ro
	}
	ro := r.findRoster(namespace, targets)
	if r.listed += len(targets); r.listed > remembered {
		r.forgetLists()
		r.listed = len(targets)
	}
	r.lists[key] = ro
	return ro
}

// forgetLists lets go of the lists that were given. r.mu is held.
func (r *Registry) forgetLists() {
	clear(r.lists)
	r.listed = 0
}

func (r *Registry) findRoster(namespace string, targets []Target) *roster {
	sum := r.sum(namespace, targets)
	for ro := r.rosters[sum]; ro != nil; ro = ro.next {
		if ro.has(namespace, targets) {
			return ro
		}
	}
	if once := distinct(targets); len(once) < len(targets) {
		return r.findRoster(namespace, once)
	}
	ro := &roster{namespace: namespace, sum: sum, members: make([]*member, len(targets)), weights: make([]uint32, len(targets)), next: r.rosters[sum]}
	for i := range targets {
		ro.members[i] = r.acquire(&targets[i], namespace)
		ro.weights[i] = clampWeight(targets[i].Weight)
	}
	ro.index = newRosterIndex(ro.members)
	ro.all = newChoices(ro, ro.weights, nil)
	r.rosters[sum] = ro
	return ro
}

// distinct returns targets without those whose ID one before them has: targets itself if there are none.
func distinct(targets []Target) []Target {
	seen := make(map[string]struct{}, len(targets))
	for i := range targets {
		seen[targets[i].ID] = struct{}{}
	}
	if len(seen) == len(targets) {
		return targets
	}
	once := make([]Target, 0, len(seen))
	for i := range targets {
		if _, first := seen[targets[i].ID]; first {
			once = append(once, targets[i])
			delete(seen, targets[i].ID)
		}
	}
	return once
}

// sum is a number that equal lists of targets of one namespace have in common.
func (r *Registry) sum(namespace string, targets []Target) uint64 {
	sum := mix(uint64(len(targets)) ^ maphash.String(r.seed, namespace))
	var last *TLS
	for i := range targets {
		t := &targets[i]
		if t.TLS != nil && t.TLS != last {
			last = t.TLS
			sum = mix(sum ^ maphash.String(r.seed, t.TLS.Key))
		}
		sum = mix(sum ^ maphash.String(r.seed, t.ID) ^ uint64(t.Weight)<<32)
	}
	return sum
}

// dismiss forgets a roster that no group has any more. r.mu is held.
func (r *Registry) dismiss(ro *roster) {
	if first := r.rosters[ro.sum]; first == ro {
		if ro.next == nil {
			delete(r.rosters, ro.sum)
		} else {
			r.rosters[ro.sum] = ro.next
		}
	} else {
		for first.next != ro {
			first = first.next
		}
		first.next = ro.next
	}
	for _, m := range ro.members {
		r.release(m)
	}
}
