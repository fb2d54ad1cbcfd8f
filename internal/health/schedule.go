package health

import (
	"container/heap"
	"time"
)

// schedule is checks by the time of the next one, a heap. A timer of each would take as much memory again as the checks do.
type schedule []*check

// unscheduled is check.slot of one that is not in the schedule.
const unscheduled = -1

// Len implements heap.Interface, as the others do.
func (s schedule) Len() int { return len(s) }

// Less puts those first that are due first.
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }

// Swap exchanges two checks.
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].slot, s[j].slot = int32(i), int32(j)
}

// Push adds a *check at the end.
func (s *schedule) Push(x any) {
	ck := x.(*check)
	ck.slot = int32(len(*s))
	*s = append(*s, ck)
}

// Pop takes the last one out.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	ck := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	ck.slot = unscheduled
	return ck
}

// scheduleAt has ck begin at a time of the loop's clock, whether it is scheduled or not.
func (k *Checker) scheduleAt(ck *check, at int64) {
	ck.due = at
	if ck.slot == unscheduled {
		heap.Push(&k.schedule, ck)
	} else {
		heap.Fix(&k.schedule, int(ck.slot))
	}
	if ck.slot == 0 {
		k.wind()
	}
}

// unschedule takes ck out of the schedule, if it is there.
func (k *Checker) unschedule(ck *check) {
	if ck.slot != unscheduled {
		heap.Remove(&k.schedule, int(ck.slot))
	}
}

// wind sets the timer for the first check. Where that was taken out, the timer expires for nothing.
func (k *Checker) wind() {
	if len(k.schedule) > 0 {
		k.next.Reset(time.Duration(max(k.schedule[0].due-k.cfg.Loop.Now(), 0)))
	}
}

// beginDue begins the checks whose time has come.
func (k *Checker) beginDue() {
	now := k.cfg.Loop.Now()
	for len(k.schedule) > 0 && k.schedule[0].due <= now {
		heap.Pop(&k.schedule).(*check).tick()
	}
	k.wind()
}
