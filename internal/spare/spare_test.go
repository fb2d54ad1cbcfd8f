package spare

import "testing"

func TestLastUsedFirst(t *testing.T) {
	var l List[int]
	if l.Get() != nil {
		t.Error("an empty list has something")
	}
	a, b := new(int), new(int)
	l.Put(a)
	l.Put(b)
	if l.Get() != b || l.Get() != a || l.Get() != nil {
		t.Error("not the last one first")
	}
}

// TestTrim: what a flood needed goes with the second Trim after it, what is needed all the time stays.
func TestTrim(t *testing.T) {
	var l List[int]
	use := func(n int) {
		var taken []*int
		for range n {
			v := l.Get()
			if v == nil {
				v = new(int)
			}
			taken = append(taken, v)
		}
		for _, v := range taken {
			l.Put(v)
		}
	}
	use(1000)
	l.Trim()
	if l.Len() != 1000 {
		t.Errorf("%d are kept right after they were needed", l.Len())
	}
	use(10)
	l.Trim()
	if l.Len() != 10 || cap(l.free) > 100 {
		t.Errorf("%d are kept in a list for %d, although 10 are needed", l.Len(), cap(l.free))
	}
	for range 3 {
		use(10)
		l.Trim()
	}
	if l.Len() != 10 {
		t.Errorf("%d are kept, 10 are needed all the time", l.Len())
	}
	l.Trim()
	if l.Len() != 0 {
		t.Errorf("%d are kept for nobody", l.Len())
	}
}
