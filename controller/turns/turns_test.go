package turns

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newQueue returns a queue of items named NAMESPACE/NAME.
func newQueue() *Queue[string] {
	return New(func(s string) string { ns, _, _ := strings.Cut(s, "/"); return ns })
}

// taken returns the items of a batch.
func taken(q *Queue[string], budget int, cost func(string) int) (list []string) {
	b := NewBudget(budget)
	q.Take(&b, cost, func(s string, _ uint64) { list = append(list, s) })
	return list
}

func one(string) int { return 1 }

// TestNamespaceThatFloodsWaitsForItself checks that an item of one namespace is in the next batch,
// however many items another namespace queues before and meanwhile.
func TestNamespaceThatFloodsWaitsForItself(t *testing.T) {
	q := newQueue()
	for i := range 1000 {
		q.Add(fmt.Sprintf("flood/%04d", i), 0)
	}
	if got := taken(q, 10, one); len(got) != 10 || got[0] != "flood/0000" || got[9] != "flood/0009" {
		t.Fatalf("first batch: %v", got)
	}
	for i := range 50 {
		q.Add(fmt.Sprintf("flood/again%d", i), 0)
		item := fmt.Sprintf("calm/%d", i)
		q.Add(item, 0)
		if got := taken(q, 10, one); !slices.Contains(got, item) {
			t.Fatalf("batch %d: %v", i, got)
		}
	}
}

// TestBatchIsTheBudgetAndOneLargeItem checks that a batch contains at most one large item, and that
// large items do not delay others.
func TestBatchIsTheBudgetAndOneLargeItem(t *testing.T) {
	q := newQueue()
	cost := func(s string) int {
		if strings.Contains(s, "large") {
			return 100
		}
		return 4
	}
	for _, item := range []string{"a/1", "b/large1", "b/large2", "b/1", "c/large", "a/2", "d/1"} {
		q.Add(item, 0)
	}
	var got []string
	for q.Len() > 0 {
		got = append(got, strings.Join(taken(q, 10, cost), " "))
	}
	if want := []string{"a/1 b/large1 d/1", "c/large a/2", "b/large2 b/1"}; !slices.Equal(got, want) {
		t.Errorf("batches %q, want %q", got, want)
	}
}

// TestSharesAreByCost adds, removes and takes at random. Each item is taken once unless it is
// removed, in the order of its namespace, and no namespace that always waits gets more than a
// share.
func TestSharesAreByCost(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	q, last, spent := newQueue(), map[string]int{}, map[string]int{}
	next, waiting := 0, map[string]bool{}
	cost := func(s string) int { return 1 + len(s)%7 }
	for step := range 5000 {
		for _, ns := range []string{"a", "b", "c"} {
			for range 1 + random.IntN(3) {
				next++
				item := fmt.Sprintf("%s/%d", ns, next)
				if random.IntN(5) == 0 {
					item += "xxxx"
				}
				q.Add(item, uint64(step))
				q.Add(item, uint64(step+1))
				waiting[item] = true
			}
		}
		for item := range waiting {
			if random.IntN(10) == 0 {
				q.Remove(item)
				delete(waiting, item)
			}
			break
		}
		budget := NewBudget(12)
		q.Take(&budget, cost, func(item string, _ uint64) {
			if !waiting[item] {
				t.Fatalf("%s is taken and does not wait", item)
			}
			delete(waiting, item)
			ns, number, _ := strings.Cut(item, "/")
			var n int
			_, _ = fmt.Sscan(strings.TrimRight(number, "x"), &n)
			if n <= last[ns] {
				t.Fatalf("%s after number %d", item, last[ns])
			}
			last[ns] = n
			spent[ns] += cost(item)
		})
		if q.Len() != len(waiting) {
			t.Fatalf("%d wait, counted %d", q.Len(), len(waiting))
		}
	}
	if least, most := min(spent["a"], spent["b"], spent["c"]), max(spent["a"], spent["b"], spent["c"]); most-least > 40 {
		t.Errorf("shares %v", spent)
	}
	all := Unlimited()
	q.Take(&all, cost, func(string, uint64) {})
	if q.Len() != 0 || len(q.tenants) != 0 || len(q.ready) != 0 {
		t.Errorf("%d items and %d namespaces are left", q.Len(), len(q.tenants))
	}
}

// TestOldestIsWhatWaitsLongest checks that a second Add keeps the stamp of the first Add.
func TestOldestIsWhatWaitsLongest(t *testing.T) {
	q := newQueue()
	if _, ok := q.Oldest(); ok {
		t.Error("an empty queue has an oldest item")
	}
	q.Add("a/1", 7)
	q.Add("b/1", 3)
	q.Add("b/1", 9)
	if s, ok := q.Oldest(); !ok || s != 3 {
		t.Errorf("%d, %v", s, ok)
	}
	q.Remove("b/1")
	if s, _ := q.Oldest(); s != 7 {
		t.Errorf("%d", s)
	}
	q.Add("b/1", 9)
	if got := taken(q, 1<<30, one); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestWorkIsLinear checks the work of a batch for many namespaces: each is visited a few times at
// most. The cost of an item is computed once per change, however many batches it waits for.
func TestWorkIsLinear(t *testing.T) {
	const n = 20_000 // quadratic work took a minute here
	q := New(func(k int) string { return fmt.Sprint(k % n) })
	for k := range n {
		q.Add(k, 0)
	}
	q.Add(n, 0) // an item of the first namespace, which stays
	budget := NewBudget(n)
	q.Take(&budget, func(int) int { return 1 }, func(int, uint64) {})
	if q.Len() != 1 || len(q.tenants) != n {
		t.Fatalf("%d items and %d namespaces are left", q.Len(), len(q.tenants))
	}
	large, asked := newQueue(), 0
	for i := range 10 {
		large.Add(fmt.Sprintf("ns%d/large", i), 0)
	}
	cost := func(string) int { asked++; return 100 }
	for range 5 {
		taken(large, 10, cost)
	}
	if asked != 10 {
		t.Errorf("the costs of 10 items were computed %d times", asked)
	}
	large.Add("ns9/large", 1)
	if taken(large, 1000, cost); asked != 11 || large.Len() != 0 {
		t.Errorf("after a change %d times, and %d items are left", asked, large.Len())
	}
}

// TestEmptyQueueKeepsNoMemory fills a queue once, as the first table does, and takes all items.
func TestEmptyQueueKeepsNoMemory(t *testing.T) {
	const items = 100_000
	q := New(func(i int) string { return strconv.Itoa(i / 100) })
	for i := range items {
		q.Add(i, uint64(i)+1)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := Unlimited()
	q.Take(&all, func(int) int { return 1 }, func(int, uint64) {})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if freed := int64(before.HeapAlloc) - int64(after.HeapAlloc); freed < 24*items {
		t.Errorf("%d bytes were freed when %d items had been taken", freed, items)
	}
	runtime.KeepAlive(q)
}
