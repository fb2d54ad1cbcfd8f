package reactor

import "turnout/internal/traffic"

// Port is where accepted connections came in, for those who count them and end them together. It has an identity: it is not copied.
type Port struct {
	Sessions *traffic.Sessions // counts its connections, possibly with those of other ports
}

// CameBy says that an accepted connection came in by p, whose Sessions count it until it ends. It is called once.
func (c *Conn) CameBy(p *Port) {
	p.Sessions.Begin(c.loop.Now())
	c.port = p
}

// cameBy returns the connections that came in by p and are open.
func (l *Loop) cameBy(p *Port) (all []*Conn) {
	for c := l.first; c != nil; c = c.next {
		if c.port == p {
			all = append(all, c)
		}
	}
	return all
}

// Retire marks the connections that came in by p, see Conn.Retired. It is called on the loop.
func (l *Loop) Retire(p *Port) {
	for _, c := range l.cameBy(p) {
		c.flags |= flagRetired
	}
}

// Retired reports that nothing more is to begin on the connection, because its port has closed: its handler ends it after what it is about.
func (c *Conn) Retired() bool { return c.flags&flagRetired != 0 }

// Cut ends the connections that came in by p without delay, in bursts, with ErrClosed. It is called
// on the loop.
func (l *Loop) Cut(p *Port) {
	InBursts(l, l.cameBy(p), func(c *Conn) { c.kill(ErrClosed, false) })
}
