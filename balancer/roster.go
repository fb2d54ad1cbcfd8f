package balancer

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// member is what the servers of all pools have in common that were given the same target: all of it but the weight. It does
// not change.
type member struct {
	names
	cookie   atomic.Pointer[string] // nil = nobody has wanted it yet
	hash     uint64                 // of the id, the same in every process
	endpoint *Endpoint
	next     *member // of the same endpoint; guarded by Registry.mu
}

// sticky returns the sticky cookie value, which is made when it is wanted first: most endpoints of a large table get no request.
func (m *member) sticky() string {
	if value := m.cookie.Load(); value != nil {
		return *value
	}
	value := CookieValue(m.id())
	m.cookie.Store(&value)
	return value
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

// rosterIndex finds members of a roster that has many of them. What it finds them by is made when it is wanted first.
type rosterIndex struct {
	placed  sync.Once
	places  map[*member]int
	cookied sync.Once
	cookies map[string]int // sticky values
}

// place returns where m stands in the roster, -1 if it does not.
func (ro *roster) place(m *member) int {
	if len(ro.members) <= fewServers {
		for i, o := range ro.members {
			if o == m {
				return i
			}
		}
		return -1
	}
	x := ro.index
	x.placed.Do(func() {
		x.places = make(map[*member]int, len(ro.members))
		for i, o := range ro.members {
			x.places[o] = i
		}
	})
	if i, ok := x.places[m]; ok {
		return i
	}
	return -1
}

// placeNear is place for who has an idea where it is.
func (ro *roster) placeNear(m *member, guess int) int {
	if guess >= 0 && guess < len(ro.members) && ro.members[guess] == m {
		return guess
	}
	return ro.place(m)
}

// byCookie returns where the member of a sticky value stands, -1 if there is none.
func (ro *roster) byCookie(value []byte) int {
	if len(ro.members) <= fewServers {
		for i, m := range ro.members {
			if m.sticky() == string(value) {
				return i
			}
		}
		return -1
	}
	x := ro.index
	x.cookied.Do(func() {
		x.cookies = make(map[string]int, len(ro.members))
		for i, m := range ro.members {
			x.cookies[m.sticky()] = i
		}
	})
	if i, ok := x.cookies[string(value)]; ok {
		return i
	}
	return -1
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
	if len(targets) > fewServers {
		ro.index = new(rosterIndex)
	}
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
