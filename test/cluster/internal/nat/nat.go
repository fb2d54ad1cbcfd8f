// Package nat translates addresses at which nobody is, such as those of Services and
// host ports, into those of pods, by rules of nftables in the network namespace of the
// calling process. All traffic of pods and nodes passes there.
package nat

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/knftables"
)

// Protocol is what is spoken above IP: "tcp", "udp" or "sctp".
type Protocol string

// Frontend is what clients connect to.
type Frontend struct {
	Address  netip.AddrPort
	Protocol Protocol
}

// Backends is who answers them. Without endpoints clients are refused.
type Backends struct {
	// Endpoints get one connection after the other at random. They are of the family of the frontend.
	Endpoints []netip.AddrPort
	// Drop makes it silent instead.
	Drop bool
	// Source is the address that endpoints see instead of the client's. Without one they see the client's.
	Source netip.Addr
}

func (b Backends) equal(other Backends) bool {
	return b.Drop == other.Drop && b.Source == other.Source && slices.Equal(b.Endpoints, other.Endpoints)
}

// refused reports whether there is no rule: what is not translated is refused.
func (b Backends) refused() bool { return len(b.Endpoints) == 0 && !b.Drop }

// Names of what is in the tables.
const (
	table     = "turnout"
	frontends = "frontends"
	hairpins  = "hairpins"
	sources   = "sources"
)

// firstMark is the lowest mark of a packet whose source is replaced; each source has one.
const firstMark = 0x100

// Table holds the rules.
type Table struct {
	mu      sync.Mutex
	nft     [2]knftables.Interface // by family
	current map[Frontend]Backends
	marks   map[netip.Addr]int // of sources; they stay
}

// New makes the rules for no frontend: everything in refuse, which are networks without
// hosts, is refused. There is one table in a network namespace.
func New(ctx context.Context, refuse []netip.Prefix) (*Table, error) {
	t := &Table{current: map[Frontend]Backends{}, marks: map[netip.Addr]int{}}
	for i, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
		nft, err := knftables.New(family, table)
		if err != nil {
			return nil, fmt.Errorf("cannot use nftables: %w", err)
		}
		t.nft[i] = nft
		if err := nft.Run(ctx, base(nft, family, refuse)); err != nil {
			return nil, fmt.Errorf("cannot set up nftables: %w", err)
		}
	}
	return t, nil
}

// base is the part of the rules that does not change.
func base(nft knftables.Interface, family knftables.Family, refuse []netip.Prefix) *knftables.Transaction {
	address := "ipv4_addr"
	if family == knftables.IPv6Family {
		address = "ipv6_addr"
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Map{Name: frontends, Type: address + " . inet_proto . inet_service : verdict"})
	tx.Add(&knftables.Map{Name: hairpins, Type: address + " . " + address + " : " + address})
	tx.Add(&knftables.Map{Name: sources, Type: "mark : " + address})
	chain := func(name string, kind knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority, rules ...string) {
		c := &knftables.Chain{Name: name, Type: knftables.PtrTo(kind), Hook: knftables.PtrTo(hook), Priority: knftables.PtrTo(priority)}
		tx.Add(c)
		for _, r := range rules {
			tx.Add(&knftables.Rule{Chain: name, Rule: r})
		}
	}
	translate := string(family) + " daddr . meta l4proto . th dport vmap @" + frontends
	chain("arriving", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority, translate)
	chain("made-here", knftables.NATType, knftables.OutputHook, knftables.DNATPriority, translate)
	chain("leaving", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority,
		fmt.Sprintf("snat to %[1]s saddr . %[1]s daddr map @%[2]s", family, hairpins), "snat to meta mark map @"+sources)
	var refusals []string
	for _, p := range refuse {
		if p.Addr().Is4() == (family == knftables.IPv4Family) {
			// By ICMP too, but the kernel does not tell its own TCP clients so.
			refusals = append(refusals, fmt.Sprintf("%s daddr %v meta l4proto tcp reject with tcp reset", family, p), fmt.Sprintf("%s daddr %v reject", family, p))
		}
	}
	chain("passing", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority, refusals...)
	chain("sent", knftables.FilterType, knftables.OutputHook, knftables.FilterPriority, refusals...)
	return tx
}

// Apply makes backends answer for frontends, all of a family at once. Frontends whose
// backends are nil end. When it fails, some changes may have been made; Apply may be
// called with the same ones again.
func (t *Table) Apply(ctx context.Context, changes map[Frontend]*Backends) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for family, nft := range t.nft {
		tx := nft.NewTransaction()
		done := map[Frontend]Backends{}
		for _, f := range slices.SortedFunc(maps.Keys(changes), compare) {
			if f.Address.Addr().Is4() != (family == 0) {
				continue
			}
			next := Backends{}
			if b := changes[f]; b != nil {
				next = *b
			}
			if before := t.current[f]; !before.equal(next) {
				t.change(tx, f, before, next)
				done[f] = next
			}
		}
		if tx.NumOperations() > 0 {
			if err := nft.Run(ctx, tx); err != nil {
				return fmt.Errorf("cannot change the rules of nftables: %w", err)
			}
		}
		for f, next := range done {
			if err := forget(f, t.current[f], next); err != nil {
				return err
			}
			if next.refused() {
				delete(t.current, f)
			} else {
				t.current[f] = next
			}
		}
	}
	return nil
}

// change writes the rules of one frontend anew.
func (t *Table) change(tx *knftables.Transaction, f Frontend, before, next Backends) {
	chain := &knftables.Chain{Name: chainName(f)}
	element := &knftables.Element{Map: frontends, Key: []string{f.Address.Addr().String(), string(f.Protocol), fmt.Sprint(f.Address.Port())}}
	if next.refused() {
		if !before.refused() {
			tx.Delete(element)
			tx.Flush(chain)
			tx.Delete(chain)
		}
		return
	}
	tx.Add(chain)
	tx.Flush(chain)
	for _, rule := range t.rules(tx, f, next) {
		tx.Add(&knftables.Rule{Chain: chain.Name, Rule: rule})
	}
	if before.refused() {
		element.Value = []string{"goto " + chain.Name}
		tx.Add(element)
	}
}

// rules says what happens to connections to f.
func (t *Table) rules(tx *knftables.Transaction, f Frontend, b Backends) []string {
	if b.Drop {
		return []string{"drop"}
	}
	var rules []string
	if b.Source.IsValid() {
		rules = append(rules, fmt.Sprintf("meta mark set %#x", t.mark(tx, b.Source)))
	}
	to := "ip"
	if f.Address.Addr().Is6() {
		to = "ip6"
	}
	if len(b.Endpoints) == 1 {
		return append(rules, fmt.Sprintf("meta l4proto %s dnat to %v", f.Protocol, b.Endpoints[0]))
	}
	var choices []string
	for i, e := range b.Endpoints {
		choices = append(choices, fmt.Sprintf("%d : %v . %d", i, e.Addr(), e.Port()))
	}
	return append(rules, fmt.Sprintf("meta l4proto %s dnat %s addr . port to numgen random mod %d map { %s }", f.Protocol, to, len(choices), strings.Join(choices, ", ")))
}

// mark returns the mark of packets that get the source, and sees to it that they do.
func (t *Table) mark(tx *knftables.Transaction, source netip.Addr) int {
	if _, ok := t.marks[source]; !ok {
		t.marks[source] = firstMark + len(t.marks)
	}
	mark := t.marks[source]
	tx.Add(&knftables.Element{Map: sources, Key: []string{fmt.Sprintf("%#x", mark)}, Value: []string{source.String()}})
	return mark
}

// AddHairpin lets a pod reach itself through a frontend: it sees the source instead of
// its own address, which it would not answer to.
func (t *Table) AddHairpin(ctx context.Context, pods, source [2]netip.Addr) error {
	return t.hairpin(ctx, pods, func(tx *knftables.Transaction, e *knftables.Element, family int) {
		e.Value = []string{source[family].String()}
		tx.Add(e)
	})
}

// RemoveHairpin ends what AddHairpin began.
func (t *Table) RemoveHairpin(ctx context.Context, pods [2]netip.Addr) error {
	return t.hairpin(ctx, pods, func(tx *knftables.Transaction, e *knftables.Element, _ int) { tx.Delete(e) })
}

func (t *Table) hairpin(ctx context.Context, pods [2]netip.Addr, do func(*knftables.Transaction, *knftables.Element, int)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for family, nft := range t.nft {
		tx := nft.NewTransaction()
		pod := pods[family].String()
		do(tx, &knftables.Element{Map: hairpins, Key: []string{pod, pod}}, family)
		if err := nft.Run(ctx, tx); err != nil {
			return fmt.Errorf("cannot change the rules of nftables for pod %s: %w", pod, err)
		}
	}
	return nil
}

// chainName is a name that frontends do not share.
func chainName(f Frontend) string {
	h := fnv.New64a()
	fmt.Fprint(h, f.Protocol, f.Address)
	return fmt.Sprintf("to-%016x", h.Sum64())
}

func compare(a, b Frontend) int {
	if c := a.Address.Compare(b.Address); c != 0 {
		return c
	}
	return strings.Compare(string(a.Protocol), string(b.Protocol))
}
