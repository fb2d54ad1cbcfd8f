package zone

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Zone is a zone, made by New. It never changes, and any goroutine may use it.
type Zone struct {
	origin           wireName
	primary, mailbox wireName
	spec             Spec // its numbers; names and addresses are below
	servers          []server
	names            []wireName // that have records, but for the origin and its servers; sorted
	records          map[wireName]*records
	nodes            map[wireName]*node // names that exist (RFC 4592 section 2.2.2), those without records too
	apex             *node
	soa              []byte // the record
	serial           uint32
	digest           [32]byte // of everything but the serial
}

// records are what a name has. Equal ones are shared by names.
type records struct {
	v4, v6 []netip.Addr
	target wireName // "" = no alias
	cut    []server // nil = no cut
	server bool     // it is a name server
}

// New makes a zone, with the serial 0. Spec is not kept.
func New(spec Spec) (*Zone, error) {
	z, err := read(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot make zone %s: %w", spec.Origin, err)
	}
	z.build()
	z.digest = z.sum()
	return z, nil
}

// Origin is the name of the zone, with a dot at its end.
func (z *Zone) Origin() string { return z.origin.String() }

// Serial is the serial of the zone (RFC 1982).
func (z *Zone) Serial() uint32 { return z.serial }

// Addresses is how many addresses the apex has.
func (z *Zone) Addresses() int {
	r := z.records[z.origin]
	return len(r.v4) + len(r.v6)
}

// Names is how many names have records of their own.
func (z *Zone) Names() int { return len(z.names) }

// Same reports whether two zones have the same content, whatever their serials are.
func (z *Zone) Same(other *Zone) bool { return z.digest == other.digest }

// WithSerial returns the same zone with another serial. What they have in common is shared.
func (z *Zone) WithSerial(serial uint32) *Zone {
	with := *z
	with.serial = serial
	with.soa = with.packSOA()
	return &with
}

// read reads what a zone consists of.
func read(spec Spec) (*Zone, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	origin, err := pack(spec.Origin)
	if err != nil {
		return nil, err
	}
	if origin.isWildcard() {
		return nil, errors.New("the origin is a wildcard")
	}
	z := &Zone{origin: origin, spec: spec, records: map[wireName]*records{}}
	z.spec.Servers, z.spec.Addresses, z.spec.Names, z.spec.Cuts = nil, nil, nil, nil
	if z.servers, err = readServers(spec.Servers, origin); err != nil {
		return nil, err
	}
	if z.primary = z.servers[0].name; spec.Primary != "" {
		if z.primary, err = pack(spec.Primary); err != nil {
			return nil, fmt.Errorf("primary server %w", err)
		}
	}
	if spec.Mailbox == "" {
		spec.Mailbox = "hostmaster." + spec.Origin
	}
	if z.mailbox, err = pack(spec.Mailbox); err != nil {
		return nil, fmt.Errorf("mailbox %w", err)
	}
	if err := z.readNames(&spec); err != nil {
		return nil, err
	}
	z.names = slices.Sorted(maps.Keys(z.records))
	z.names = slices.DeleteFunc(z.names, func(n wireName) bool { return n == origin })
	return z, nil
}

// readNames reads the apex, the wildcard, cuts and names.
func (z *Zone) readNames(spec *Spec) error {
	apex := &records{}
	apex.v4, apex.v6 = families(spec.Addresses)
	z.records[z.origin] = apex // never a cut
	if len(apex.v4)+len(apex.v6) > 0 {
		wildcard, err := pack("*." + spec.Origin)
		if err != nil {
			return err
		}
		z.records[wildcard] = apex
	}
	for _, s := range z.servers {
		if !s.name.within(z.origin) {
			continue
		}
		if err := z.add(s.name, &records{v4: s.v4, v6: s.v6, server: true}); err != nil {
			return err
		}
	}
	for _, c := range spec.Cuts {
		name, err := pack(c.Name)
		if err != nil {
			return err
		}
		if name.isWildcard() {
			return fmt.Errorf("cut %s is a wildcard", c.Name)
		}
		servers, err := readServers(c.Servers, name)
		if err != nil {
			return fmt.Errorf("cut %s: %w", c.Name, err)
		}
		if err := z.add(name, &records{cut: servers}); err != nil {
			return err
		}
	}
	shared := map[string]*records{}
	for i := range spec.Names {
		name, err := pack(spec.Names[i].Name)
		if err != nil {
			return err
		}
		r, err := readName(&spec.Names[i], shared)
		if err != nil {
			return err
		}
		if err := z.add(name, r); err != nil {
			return err
		}
	}
	return z.settleCuts()
}

// readName returns the records of a name; equal ones are the same.
func readName(n *Name, shared map[string]*records) (*records, error) {
	if (n.Target == "") == (len(n.Addresses) == 0) {
		return nil, fmt.Errorf("%s has neither or both of addresses and a target", n.Name)
	}
	key := n.Target
	if key == "" {
		b := make([]byte, 0, len(n.Addresses)*17)
		for _, a := range n.Addresses {
			b = append(append(b, '|'), a.AsSlice()...)
		}
		key = string(b)
	}
	if r := shared[key]; r != nil {
		return r, nil
	}
	r := &records{}
	if n.Target != "" {
		target, err := pack(n.Target)
		if err != nil {
			return nil, fmt.Errorf("target of %s: %w", n.Name, err)
		}
		r.target = target
	} else if r.v4, r.v6 = families(n.Addresses); len(r.v4)+len(r.v6) == 0 {
		return nil, fmt.Errorf("%s has no valid address", n.Name)
	}
	shared[key] = r
	return r, nil
}

// add gives a name records. The apex has its own.
func (z *Zone) add(name wireName, r *records) error {
	if name == z.origin || !name.within(z.origin) {
		return fmt.Errorf("%s is not below the origin", name)
	}
	if name.isWildcard() && name.parent() == z.origin && z.records[name] != nil {
		return fmt.Errorf("%s is there already, with the addresses of the zone", name)
	}
	if z.records[name] != nil {
		return fmt.Errorf("%s is there twice", name)
	}
	z.records[name] = r
	return nil
}

// settleCuts gives names to servers of cuts that are in this zone, and finds names that would be in two zones.
func (z *Zone) settleCuts() error {
	cuts := map[wireName][]server{}
	for name, r := range z.records {
		if r.cut != nil {
			cuts[name] = r.cut
		}
	}
	if len(cuts) == 0 {
		return nil
	}
	for name, servers := range cuts {
		for _, s := range servers {
			if s.name.within(z.origin) && !s.name.within(name) && z.records[s.name] == nil && z.cutAbove(s.name) == "" && len(s.v4)+len(s.v6) > 0 {
				z.records[s.name] = &records{v4: s.v4, v6: s.v6, server: true}
			}
		}
	}
	for name := range z.records {
		if above := z.cutAbove(name); above != "" {
			return fmt.Errorf("%s is below the cut at %s, in another zone", name, above)
		}
	}
	return nil
}

// cutAbove returns a cut that a name is below, "" if there is none.
func (z *Zone) cutAbove(name wireName) wireName {
	for name != z.origin {
		if name = name.parent(); z.records[name] != nil && z.records[name].cut != nil {
			return name
		}
	}
	return ""
}

// ttl is that of the addresses and aliases of a name.
func (z *Zone) ttl(r *records) uint32 {
	if r.server {
		return z.spec.ServerTTL
	}
	return z.spec.TTL
}
