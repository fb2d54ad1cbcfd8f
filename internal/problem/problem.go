// Package problem is the one list of what is wrong now, wherever it was found: routes that are rejected, what of others has no effect, files that
// cannot be used, certificates that end, pods that get no requests. The log, /problems and the metrics have it in the same words.
package problem

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is what sort of thing is wrong. Its String is the label of the metric.
type Kind uint8

// The kinds.
const (
	Rejected    Kind = iota // a route is not served
	Note                    // something of a route has no effect, or is missing
	Certificate             // a route's certificate has expired or will soon, or is not for its host
	File                    // a file cannot be used
	Source                  // objects cannot be read from where they come from
	Down                    // health checks of an endpoint fail
	Ejected                 // a server gets no requests for a while, because requests to it failed
	Kinds                   // how many there are
)

// String is the stable word of the kind.
func (k Kind) String() string {
	return [Kinds]string{"rejected", "note", "certificate", "file", "source", "down", "ejected"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error says that no kind is called so.
func (k *Kind) UnmarshalText(text []byte) error {
	for other := range Kinds {
		if other.String() == string(text) {
			*k = other
			return nil
		}
	}
	return fmt.Errorf("no problem is of the kind %q", text)
}

// Problem is one thing that is wrong. Fields that say nothing are empty.
type Problem struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Route     string `json:"route,omitempty"`   // NAMESPACE/NAME, as the log has it; of several the first ones, separated by commas
	Service   string `json:"service,omitempty"` // name
	Server    string `json:"server,omitempty"`  // address and port
	File      string `json:"file,omitempty"`
	Object    string `json:"object,omitempty"` // in the file
	Reason    string `json:"reason,omitempty"` // a stable word
	Text      string `json:"text"`             // for people; as the log has it
	// Since is when it began, as it was reported to the list.
	Since time.Time `json:"since"`
}

// What is kept of one owner: so many problems, whose texts have so many bytes.
const (
	mostOfOwner = 32
	mostText    = 1024
)

// List is what is wrong now. Any goroutine may use it; a nil *List is one that nobody reads.
type List struct {
	now func() time.Time // nil = time.Now

	mu     sync.Mutex
	owners map[string][]Problem
	counts [Kinds]int
}

// NewList returns an empty list.
func NewList() *List { return &List{owners: make(map[string][]Problem)} }

// Set says what is wrong with owner from now on; without problems nothing is. Owner names the thing, such as "route/shop/front". Those that it had
// before and has again keep their Since. It returns those that are new. Of more than 32 the last one says how many there are.
func (l *List) Set(owner string, problems ...Problem) (added []Problem) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.owners[owner]
	if len(problems) == 0 && before == nil {
		return nil
	}
	now := time.Now()
	if l.now != nil {
		now = l.now()
	}
	kept := make([]Problem, 0, min(len(problems), mostOfOwner))
	for i := range problems {
		p := problems[i]
		if len(kept) == mostOfOwner-1 && len(problems) > mostOfOwner {
			p.Reason, p.Text = "", strconv.Itoa(len(problems)-i)+" more"
		}
		p.Text, p.Since = clip(p.Text), now.UTC()
		if at := slices.IndexFunc(before, p.same); at >= 0 {
			p.Since = before[at].Since
		} else {
			added = append(added, p)
		}
		if kept = append(kept, p); len(kept) == mostOfOwner {
			break
		}
	}
	for i := range before {
		l.counts[before[i].Kind]--
	}
	for i := range kept {
		l.counts[kept[i].Kind]++
	}
	if len(kept) == 0 {
		delete(l.owners, owner)
	} else {
		l.owners[owner] = kept
	}
	return added
}

// same reports whether o is the same problem, whenever it began.
func (p *Problem) same(o Problem) bool {
	o.Since = p.Since
	return o == *p
}

func clip(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "..."
}

// Counts are how many problems there are of each kind.
func (l *List) Counts() [Kinds]int {
	if l == nil {
		return [Kinds]int{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// All gives problems by owner, those of one in its order: those behind the key after, "" = from the first on, at most limit, 0 = all. next is the
// key of the last one when there are more. They are those of the time of the call.
func (l *List) All(after string, limit int) (problems iter.Seq[Problem], next string) {
	type keyed struct {
		owner string
		at    int
		Problem
	}
	var all []keyed
	if l != nil {
		l.mu.Lock()
		all = make([]keyed, 0, len(l.owners))
		for owner, of := range l.owners {
			for i := range of {
				all = append(all, keyed{owner, i, of[i]})
			}
		}
		l.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.at, b.at)) })
	if after != "" {
		owner, number := after, -1
		if i := strings.LastIndexByte(after, '#'); i >= 0 {
			if n, err := strconv.Atoi(after[i+1:]); err == nil {
				owner, number = after[:i], n
			}
		}
		first, _ := slices.BinarySearchFunc(all, number+1, func(k keyed, at int) int { return cmp.Or(cmp.Compare(k.owner, owner), cmp.Compare(k.at, at)) })
		all = all[first:]
	}
	if limit > 0 && limit < len(all) {
		all = all[:limit]
		next = all[limit-1].owner + "#" + strconv.Itoa(all[limit-1].at)
	}
	return func(yield func(Problem) bool) {
		for i := range all {
			if !yield(all[i].Problem) {
				return
			}
		}
	}, next
}
