package expansion

import (
	"fmt"
	"slices"
)

// NamespaceAllowance is the heap that the objects of a namespace may take together beyond
// BytesPerByte for each of their own bytes.
const NamespaceAllowance = 8 * ObjectAllowance

// Ledger enforces NamespaceAllowance. If the objects of a namespace exceed it together, the first
// ones in the order of compare stay. It belongs to one goroutine.
type Ledger[K comparable] struct {
	namespace func(K) string
	compare   func(a, b K) int
	accounts  map[string]*account[K]
	touched   map[string]struct{}
}

// account holds the objects of one namespace that use its allowance.
type account[K comparable] struct {
	sum     int
	excess  map[K]int
	refused map[K]string
}

// NewLedger returns a ledger without objects. compare is the order of the objects of a namespace.
func NewLedger[K comparable](namespace func(K) string, compare func(a, b K) int) *Ledger[K] {
	return &Ledger[K]{namespace: namespace, compare: compare, accounts: make(map[string]*account[K]), touched: make(map[string]struct{})}
}

// Set records the size of an object in place of an earlier one.
func (l *Ledger[K]) Set(key K, size Size) { l.set(key, max(size.Bytes()-size.Source*BytesPerByte, 0)) }

// Remove deletes an object. It has no effect on an unknown one.
func (l *Ledger[K]) Remove(key K) { l.set(key, 0) }

func (l *Ledger[K]) set(key K, excess int) {
	namespace := l.namespace(key)
	a := l.accounts[namespace]
	if a == nil {
		if excess == 0 {
			return
		}
		a = &account[K]{excess: make(map[K]int)}
		l.accounts[namespace] = a
	}
	if a.excess[key] == excess && a.refused[key] == "" {
		return
	}
	a.sum += excess - a.excess[key]
	a.excess[key] = excess
	if excess == 0 {
		delete(a.excess, key)
		delete(a.refused, key)
	}
	l.touched[namespace] = struct{}{}
}

// Refused returns why an object exceeds the allowance of its namespace as of the last Settle, with
// the figure and the limit, "" if it does not.
func (l *Ledger[K]) Refused(key K) string {
	if a := l.accounts[l.namespace(key)]; a != nil {
		return a.refused[key]
	}
	return ""
}

// Settle decides again for the namespaces with changed objects. It returns the objects with a new
// result of Refused.
func (l *Ledger[K]) Settle() (changed []K) {
	for namespace := range l.touched {
		a := l.accounts[namespace]
		refused := a.settle(l.compare)
		for key, why := range refused {
			if a.refused[key] != why {
				changed = append(changed, key)
			}
		}
		for key := range a.refused {
			if refused[key] == "" {
				changed = append(changed, key)
			}
		}
		if a.refused = refused; len(a.excess) == 0 {
			delete(l.accounts, namespace)
		}
	}
	clear(l.touched)
	return changed
}

// settle returns the objects that exceed the allowance.
func (a *account[K]) settle(compare func(a, b K) int) map[K]string {
	if a.sum <= NamespaceAllowance {
		return nil
	}
	keys := make([]K, 0, len(a.excess))
	for key := range a.excess {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	refused := make(map[K]string)
	sum := 0
	for _, key := range keys {
		if sum+a.excess[key] > NamespaceAllowance {
			refused[key] = fmt.Sprintf("expands to %s bytes of memory beyond %d for each of its own, limit %s for all objects of the namespace, of which older ones have most",
				grouped(a.excess[key]), BytesPerByte, grouped(NamespaceAllowance))
			continue
		}
		sum += a.excess[key]
	}
	return refused
}
