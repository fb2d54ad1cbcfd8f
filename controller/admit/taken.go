package admit

// taken is the claims that hold their part of a host or domain, oldest first. What is
// asked of it costs the same however many there are: nothing keeps a namespace from
// having thousands of paths on one host.
type taken struct {
	claims      []*claim
	paths       map[string]*claim // the oldest of each path; nil while they are few
	tls         *claim            // the oldest with a tls section
	passthrough *claim            // the oldest passthrough route
}

// few is the number of claims that are looked through one by one.
const few = 8

func (t *taken) addClaim(c *claim) {
	t.claims = append(t.claims, c)
	if t.tls == nil && c.TLS {
		t.tls = c
	}
	if t.passthrough == nil && c.Passthrough {
		t.passthrough = c
	}
	switch {
	case len(t.claims) <= few:
		return
	case t.paths == nil:
		t.paths = make(map[string]*claim, 2*few)
		for _, e := range t.claims {
			t.note(e)
		}
	default:
		t.note(c)
	}
}

func (t *taken) note(c *claim) {
	if t.paths[c.Path] == nil {
		t.paths[c.Path] = c
	}
}

// first returns the oldest, nil if there is none.
func (t *taken) first() *claim {
	if len(t.claims) == 0 {
		return nil
	}
	return t.claims[0]
}

// at returns the oldest with a path, nil if there is none.
func (t *taken) at(path string) *claim {
	if t.paths != nil {
		return t.paths[path]
	}
	for _, e := range t.claims {
		if e.Path == path {
			return e
		}
	}
	return nil
}

// collides returns the one that cannot be distinguished from c on one host, nil if there is
// none: the one with the same path, or the oldest of those where one of the two takes all
// of TLS.
func (t *taken) collides(c *claim) *claim {
	if e := t.at(c.Path); e != nil {
		return e // the plainest explanation
	}
	switch {
	case c.Passthrough:
		return t.tls
	case c.TLS:
		return t.passthrough
	}
	return nil
}
