package server

import "testing"

func TestHeldBytes(t *testing.T) {
	for _, x := range []struct {
		set   int
		limit uint64
		loops int
		want  int
	}{
		{0, 0, 2, 128 << 20},
		{0, 256 << 20, 2, 32 << 20},
		{0, 16 << 20, 4, 4 << 20}, // never less: one loop has work to do
		{64 << 20, 256 << 20, 1, 64 << 20},
		{64 << 20, 0, 0, 64 << 20},
	} {
		if got := (&Limits{HeldBytes: x.set}).heldBytes(x.limit, x.loops); got != x.want {
			t.Errorf("%d of %d bytes for %d loops: %d each, want %d", x.set, x.limit, x.loops, got, x.want)
		}
	}
}

// TestRouteConnections: the share is of what is scarcer, connections or descriptors.
func TestRouteConnections(t *testing.T) {
	for _, tc := range []struct{ connections, share, files, want int }{
		{50_000, 25, 1 << 20, 12_500}, {0, 25, 1 << 20, (1<<20 - ownDescriptors) / 8}, {50_000, 25, 20_000, (20_000 - ownDescriptors) / 8},
		{50_000, 100, 1 << 20, 0}, {50_000, 25, 0, 12_500}, {0, 25, 0, 0}, {1, 1, 0, 1}, {50_000, 0, 1 << 20, 0},
	} {
		l := Limits{Connections: tc.connections, RouteShare: tc.share}
		if got := l.routeConnections(tc.files); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

func TestBudgetLeavesDescriptors(t *testing.T) {
	for files, want := range map[int]int{0: 0, 256: 128, 100: 50, 1000: 872, 1 << 20: 1<<20 - 128} {
		if got := connectionFiles(files); got != want {
			t.Errorf("of %d descriptors %d are for connections, want %d", files, got, want)
		}
	}
}
