package nearest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3},
		{"ab", "ba", 1}, {strings.Repeat("x", Longest+1), "x", Longest},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	known := []string{"validate", "version", "run", "Route", "EndpointSlice"}
	for word, want := range map[string]string{
		"valdiate": "validate", "VERSION": "version", "rnu": "run", "Rout": "Route", "route": "Route", "endpointslices": "EndpointSlice",
		"nothing": "", "": "", "x": "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("--", "vresion", known); got != "; did you mean --version?" {
		t.Error(got)
	}
	if got := DidYouMean("--", "nothing", known); got != "" {
		t.Error(got)
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("abc", "acb")
	f.Fuzz(func(t *testing.T, a, b string) {
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) && len(a) <= Longest && len(b) <= Longest || d > max(len(a), len(b), Longest) {
			t.Errorf("%q and %q: %d", a, b, d)
		}
	})
}
