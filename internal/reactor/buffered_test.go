package reactor

import (
	"testing"
	"unsafe"
)

// TestIdleConnIsSmall: tens of thousands of them wait at the same time, and the next size class is 144 bytes.
func TestIdleConnIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 128 {
		t.Errorf("a Conn takes %d bytes", size)
	}
	if size := unsafe.Sizeof(buffered{}); size > 64 {
		t.Errorf("what a Conn has between two calls takes %d bytes", size)
	}
}

// TestBufferedGoesRound: what one Conn gives back the next one gets, empty, and a loop keeps so many.
func TestBufferedGoesRound(t *testing.T) {
	l := new(Loop)
	first, next := &Conn{loop: l}, &Conn{loop: l}
	b := first.hold()
	b.in = []byte("kept")
	if first.letGo(); first.buffered != b || string(first.kept()) != "kept" {
		t.Fatal("it is given back while input is kept")
	}
	if in := first.takeKept(); string(in) != "kept" || first.buffered != nil || first.kept() != nil || first.output() != nil {
		t.Fatalf("taken is %q, and %+v is held", in, first.buffered)
	}
	if next.hold() != b || next.kept() != nil || next.output().len() != 0 {
		t.Errorf("the next one holds %+v", next.buffered)
	}
	conns := make([]Conn, mostSpare+10)
	for i := range conns {
		conns[i].loop = l
		conns[i].hold()
	}
	for i := range conns {
		conns[i].letGo()
	}
	if l.spares.n != mostSpare {
		t.Errorf("%d are kept", l.spares.n)
	}
}
