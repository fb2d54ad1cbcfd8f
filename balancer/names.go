package balancer

import "strings"

// names are the identity of a server and the names of its pod and service, which stand in the identity of all servers but those of tests: one text, and
// where they are in it.
type names struct {
	text        string
	idEnds      uint16
	podAt       uint16
	podEnds     uint16
	serviceAt   uint16
	serviceEnds uint16

	// Of the member that has the names; here they fill the last bytes.
	noCheck bool
	refs    uint32 // rosters it is in; guarded by Registry.mu
}

// mostText is the longest text of names. Kubernetes allows no names from which one of a tenth would be made.
const mostText = 1<<16 - 1

// namesOf returns the names of a target. Of one whose names are too long for any cluster the identity is cut: it is distinguished by its
// endpoint then.
func namesOf(t *Target) names {
	n := names{text: t.ID[:min(len(t.ID), mostText/2)]}
	n.idEnds = uint16(len(n.text))
	n.podAt, n.podEnds = n.place(t.Pod)
	n.serviceAt, n.serviceEnds = n.place(t.Service)
	return n
}

// place returns where a name is in the text, which it is added to if it is nowhere.
func (n *names) place(name string) (at, ends uint16) {
	i := strings.Index(n.text, name)
	if i < 0 {
		i = len(n.text)
		n.text += name[:min(len(name), mostText-i)]
	}
	return uint16(i), uint16(min(i+len(name), len(n.text)))
}

func (n *names) id() string      { return n.text[:n.idEnds] }
func (n *names) pod() string     { return n.text[n.podAt:n.podEnds] }
func (n *names) service() string { return n.text[n.serviceAt:n.serviceEnds] }
