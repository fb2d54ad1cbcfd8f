package memory

import (
	"runtime"
	"testing"
)

func TestReturner(t *testing.T) {
	const mib = 1 << 20
	r := returner{before: memory{allocated: 100 * mib}, kept: 20 * mib}
	for i, look := range []struct {
		allocated, held uint64 // MiB; the former since the look before
		want            bool
	}{
		{1, 21, false},   // nothing happened
		{500, 60, false}, // a flood
		{4, 80, false},   // and its rest
		{1, 80, true},    // over
		{1, 24, false},   // returned already
		{2, 22, false},   // what is there was in use when it was returned
		{1, 22, true},    // and what event loops have given up since
		{1, 22, false},
		{1, 22, false},
		{1, 22, false},
		{2, 27, true},  // slowly, but it has grown
		{9, 27, false}, // the next flood
		{1, 24, false}, // was none
		{1, 24, false},
		{1, 24, false},
	} {
		now := memory{allocated: r.before.allocated + look.allocated*mib, held: look.held * mib}
		if got := r.due(now); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
		if look.want {
			r.kept = 22 * mib
		}
	}
}

// TestReturnerOfALargeHeap: what each scrape leaves is returned once a minute, more at once.
func TestReturnerOfALargeHeap(t *testing.T) {
	const mib = 1 << 20
	r := returner{kept: 80 * mib}
	for i, look := range []struct {
		held uint64 // MiB
		want bool
	}{{84, false}, {84, false}, {84, false}, {84, false}, {84, false}, {84, true}, {83, false}, {86, true}, {84, false}, {84, false}, {84, true}, {84, false}} {
		if got := r.due(memory{held: look.held * mib}); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}

func TestCodeIsReturned(t *testing.T) {
	const mib = 1 << 20
	r := returner{}
	for i, look := range []struct {
		resident uint64 // MiB
		quiet    bool
		want     bool
	}{
		{20, false, false}, // starting
		{20, true, true},   // over
		{6, true, false},   // what serving takes
		{7, true, false},   // about the same
		{20, false, false}, // something else is going on
		{20, true, true},   // over
		{15, false, false}, // it was not
		{15, true, true},
		{9, true, false}, // it may be something else again
		{9, true, true},
		{9, true, false}, // what is taken each time stays
		{9, true, false},
		{12, true, true},
		{6, true, false}, // what serving takes
		{9, true, true},
		{0, true, false}, // not known
		{0, true, false},
	} {
		r.quiet = look.quiet
		if got := r.codeDue(look.resident * mib); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}

func TestReadMemory(t *testing.T) {
	before := readMemory()
	block := make([]byte, 8<<20)
	now := readMemory()
	if now.allocated-before.allocated < 8<<20 || now.held < 8<<20 {
		t.Errorf("%+v after %+v", now, before)
	}
	runtime.KeepAlive(block)
}
