package main

import (
	"runtime"
	"testing"
)

func TestReturnable(t *testing.T) {
	const mib = 1 << 20
	f := func(want bool, allocated, live, held uint64) {
		t.Helper()
		now := memory{allocated: 1000*mib + allocated*mib, live: live * mib, held: held * mib}
		if got := now.returnable(memory{allocated: 1000 * mib}); got != want {
			t.Errorf("%d MiB allocated, %d live, %d held: %v", allocated, live, held, got)
		}
	}
	f(true, 1, 80, 160)
	f(false, 20, 80, 160) // something happens
	f(false, 1, 80, 99)   // not worth it
	f(false, 1, 4, 6)
	f(true, 0, 4, 7)
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
