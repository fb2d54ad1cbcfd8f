package local

import "testing"

func TestAdd(t *testing.T) {
	b := Backends{}
	for _, text := range []string{"a/b=3000", "a/b=3001", "a/b=3000", "c/d=1"} {
		if err := b.Add(text); err != nil {
			t.Error(err)
		}
	}
	if len(b) != 2 || len(b["a/b"]) != 2 || b["c/d"][0] != 1 {
		t.Errorf("%v", b)
	}
	for _, text := range []string{"", "a=1", "a/b", "a/b=", "a/b=0", "a/b=65536", "a/b=x", "/b=1", "a/=1", "a/b/c=1"} {
		if b.Add(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
