package work

import "testing"

// TestAccountEnds: an account that cannot pay for an operation pays for none after it, and optional
// operations leave the reserve.
func TestAccountEnds(t *testing.T) {
	a := Of(Reserve + 10)
	switch {
	case !a.Spare(10) || a.Left() != Reserve:
		t.Errorf("%d units are left, want the reserve", a.Left())
	case a.Spare(1) || a.Left() != Reserve:
		t.Error("an optional operation takes of the reserve")
	case !a.Spend(Reserve) || a.Left() != 0 || !a.Spend(0) || a.Over():
		t.Error("the reserve cannot be spent")
	case a.Spend(1) || a.Spend(0) || !a.Over():
		t.Error("an empty account grants work")
	}
}
