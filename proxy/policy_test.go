package proxy

import (
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

func TestTakeCookie(t *testing.T) {
	for _, tc := range []struct {
		cookies, rest, value string
		found                bool
	}{
		{"", "", "", false},
		{"a=1; b=2", "a=1; b=2", "", false},
		{"s=x", "", "x", true},
		{"a=1; s=x; b=2", "a=1; b=2", "x", true},
		{"s=x; a=1", "a=1", "x", true},
		{"a=1;s=x;b=2", "a=1; b=2", "x", true},
		{"s=x; s=y; a=1", "a=1", "x", true}, // the first one counts, all are taken out
		{`s="quoted"; a=1`, "a=1", "quoted", true},
		{"as=1; xs=2", "as=1; xs=2", "", false},
		{"a=s=x", "a=s=x", "", false},
		{"s", "s", "", false},
		{"s=", "", "", true},
		{"; ;s=x; ;a=1", "a=1", "x", true},
	} {
		ex := &Exchange{}
		rest, value, found := ex.takeCookie([]byte(tc.cookies), "s")
		if string(rest) != tc.rest || string(value) != tc.value || found != tc.found {
			t.Errorf("%q: rest %q, value %q, %v; want %q, %q, %v", tc.cookies, rest, value, found, tc.rest, tc.value, tc.found)
		}
	}
}

// FuzzTakeCookie: what is left holds no cookie of the name, and every other pair in order.
func FuzzTakeCookie(f *testing.F) {
	for _, s := range []string{"a=1; s=x; b=2", "s=x;s=y", "s", ";;", "a=s=;s=\"\"", "s= x ; y", "0 s=0 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cookies string) {
		ex := &Exchange{}
		rest, _, found := ex.takeCookie([]byte(cookies), "s")
		if !found {
			if string(rest) != cookies {
				t.Fatalf("%q became %q although nothing was found", cookies, rest)
			}
			return
		}
		var want []string
		for _, pair := range strings.Split(cookies, ";") {
			pair = strings.Trim(pair, " \t")
			if pair != "" && !strings.HasPrefix(pair, "s=") {
				want = append(want, pair)
			}
		}
		if string(rest) != strings.Join(want, "; ") {
			t.Fatalf("%q became %q, want %q", cookies, rest, want)
		}
	})
}

func TestWithoutPort(t *testing.T) {
	for in, want := range map[string]string{
		"a.test": "a.test", "a.test:80": "a.test", "a.test.:8080": "a.test.", "[::1]:443": "[::1]", "[::1]": "[::1]", "a.test:": "a.test:", "80": "80", "": "",
	} {
		if got := string(withoutPort([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTimeoutsNameTheBadField(t *testing.T) {
	limits := DefaultTimeouts()
	if err := limits.Validate(); err != nil {
		t.Fatal(err)
	}
	limits.ClientHello = 0
	if err := limits.Validate(); err == nil || !strings.Contains(err.Error(), "ClientHello") {
		t.Errorf("error %v does not name the field", err)
	}
}

// TestScratchKeepsWhatItGave: values stay as they were when the block runs full.
func TestScratchKeepsWhatItGave(t *testing.T) {
	var m field.Arena
	var views [][]byte
	for i := range 100 {
		b := m.Begin(20)
		b = append(b, strings.Repeat(string(rune('a'+i%26)), 20)...)
		views = append(views, m.End(b))
	}
	for i, v := range views {
		if string(v) != strings.Repeat(string(rune('a'+i%26)), 20) {
			t.Fatalf("value %d became %q", i, v)
		}
	}
}

func TestReasonsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if w := r.String(); w == "" || w == "unknown" || seen[w] {
			t.Errorf("reason %d is called %q", r, w)
		} else {
			seen[w] = true
		}
	}
}
