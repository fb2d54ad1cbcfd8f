package routing

// NotFound reports whether a request for a host that Match finds no route for is to be answered that nothing is there (404), and not that an application is not available (503,
// which is what OpenShift's routers say): rules of its host say so, all of them, or, where its host has none, all rules of the pair of ports. It is about that
// pair alone, and does not allocate.
func (t *Table) NotFound(host []byte) bool {
	var buffer [maxHost]byte
	bareName, ok := bare(host)
	if !ok {
		return t.unavailable == 0
	}
	name := buffer[:len(bareName)]
	lower(name, bareName)
	found := false
	for _, g := range [...]*group{t.hosts.find(name), t.hosts.findWild(name)} {
		if g == nil {
			continue
		}
		found = true
		for e := range g.tried() {
			if !e.route.policy.NotFound {
				return false
			}
		}
	}
	return found || t.unavailable == 0
}
