package tracecontext

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const (
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	span  = "00f067aa0ba902b7"
)

// said is a context as the tables write it.
func said(c Context, ok bool) string {
	if !ok {
		return "-"
	}
	s := fmt.Sprintf("%x %x %s", c.Trace, c.Span, [...]string{"undecided", "no", "yes"}[c.Sampling])
	if c.Random {
		s += " random"
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, trace, "T"), span, "S")
}

func TestParseParent(t *testing.T) {
	for in, want := range map[string]string{
		"00-T-S-00":                              "T S no",
		"00-T-S-01":                              "T S yes",
		"00-T-S-02":                              "T S no random",
		"00-T-S-03":                              "T S yes random",
		"00-T-S-ff":                              "T S yes random", // bits that are not known are left aside
		"00-T-S-01-":                             "-",              // version 00 ends there
		"00-T-S-01-extra":                        "-",
		"00-T-S-01x":                             "-",
		"01-T-S-01":                              "T S yes",
		"cc-T-S-01-what":                         "T S yes",
		"cc-T-S-03":                              "T S yes", // what the second bit means is up to that version
		"cc-T-S-01x":                             "-",
		"cc-T-S-01.what":                         "-",
		"ff-T-S-01":                              "-",
		"FF-T-S-01":                              "-",
		"0-T-S-01":                               "-",
		"0x-T-S-01":                              "-",
		"00-T-S-0":                               "-",
		"00-T-S-0g":                              "-",
		"00-T-S-0A":                              "-",
		"00_T-S-01":                              "-",
		"00-T_S-01":                              "-",
		"00-T-S_01":                              "-",
		" 00-T-S-01":                             "-",
		"":                                       "-",
		"00-" + strings.ToUpper(trace) + "-S-01": "-",
		"00-" + strings.Repeat("0", 32) + "-S-01": "-",
		"00-T-" + strings.Repeat("0", 16) + "-01": "-",
		"00-" + trace[1:] + "-S-01":               "-",
		"00-T-" + span + "0-01":                   "-",
	} {
		in = strings.ReplaceAll(strings.ReplaceAll(in, "T", trace), "S", span)
		if got := said(ParseParent([]byte(in))); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestB3(t *testing.T) {
	for in, want := range map[string]string{
		"T-S-1":                         "T S yes",
		"T-S-0":                         "T S no",
		"T-S-d":                         "T S yes",
		"T-S":                           "T S undecided",
		"T-S-1-S":                       "T S yes",
		"a3ce929d0e0e4736-S-1":          "0000000000000000a3ce929d0e0e4736 S yes",
		"0":                             "00000000000000000000000000000000 0000000000000000 no",
		"1":                             "00000000000000000000000000000000 0000000000000000 yes",
		"d":                             "00000000000000000000000000000000 0000000000000000 yes",
		"2":                             "-",
		"":                              "-",
		"T-S-2":                         "-",
		"T-S-":                          "-",
		"T-S-1-":                        "-",
		"T-S-1-S-":                      "-",
		"T-S-true":                      "-",
		"T":                             "-",
		"T-":                            "-",
		"0000000000000000-S-1":          "-",
		"T-0000000000000000-1":          "-",
		strings.ToUpper(trace) + "-S-1": "-",
	} {
		in = strings.ReplaceAll(strings.ReplaceAll(in, "T", trace), "S", span)
		if got := said(ParseB3([]byte(in))); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestB3Fields(t *testing.T) {
	for in, want := range map[string]string{ // trace, span, sampled, flags
		"T S 1 .":                "T S yes",
		"T S 0 .":                "T S no",
		"T S true .":             "T S yes",
		"T S false .":            "T S no",
		"T S . .":                "T S undecided",
		"T S . 0":                "T S undecided",
		"T S . 1":                "T S yes",
		"T S 0 1":                "T S yes", // debug wins
		". . 0 .":                "00000000000000000000000000000000 0000000000000000 no",
		". . . .":                "-",
		"T . 1 .":                "-",
		". S 1 .":                "-",
		"T S d .":                "-",
		"T S 2 .":                "-",
		"T S 1 2":                "-",
		"T SS 1 .":               "-",
		"a3ce929d0e0e4736 S 1 .": "0000000000000000a3ce929d0e0e4736 S yes",
	} {
		var values [4][]byte
		for i, w := range strings.Fields(in) {
			if w != "." {
				values[i] = []byte(strings.ReplaceAll(strings.ReplaceAll(w, "T", trace), "S", span))
			}
		}
		f := B3Fields{values[0], values[1], values[2], values[3]}
		if got := said(f.Parse()); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestWhatIsWrittenIsRead: and the id of the span stands where it is said to stand.
func TestWhatIsWrittenIsRead(t *testing.T) {
	c, _ := ParseParent([]byte("00-" + trace + "-" + span + "-03"))
	other := SpanID{1, 2, 3, 4, 5, 6, 7, 0xff}
	parent, b3 := AppendParent(nil, &c), AppendB3(nil, &c)
	if string(parent) != "00-"+trace+"-"+span+"-03" || string(b3) != trace+"-"+span+"-1" || len(parent) != ParentSize || len(b3) != B3Size {
		t.Errorf("%s, %s", parent, b3)
	}
	PutSpan(parent[ParentSpan:], other)
	PutSpan(b3[B3Span:], other)
	c.Span = other
	if got, ok := ParseParent(parent); !ok || got != c {
		t.Errorf("%s", parent)
	}
	c.Random = false // B3 cannot say that
	if got, ok := ParseB3(b3); !ok || got != c {
		t.Errorf("%s", b3)
	}
	if got := string(AppendParent(nil, &Context{})); got != "00-"+strings.Repeat("0", 32)+"-"+strings.Repeat("0", 16)+"-00" {
		t.Error(got)
	}
}

func TestState(t *testing.T) {
	long := "long=" + strings.Repeat("x", 200)
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("k%d=v", i))
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct {
		lines []string
		want  string // what is appended, "-" for an invalid list
		fits  bool
	}{
		{[]string{"a=1"}, "a=1", true},
		{[]string{"a=1,b=2", "c=3"}, "a=1,b=2,c=3", true},
		{[]string{" a=1 ,\t b=2 x ,, "}, "a=1,b=2 x", true},
		{[]string{""}, "", true},
		{[]string{"tenant@sys=1,0a_-*/=!"}, "tenant@sys=1,0a_-*/=!", true},
		{[]string{"a=1,a=2"}, "-", false},
		{[]string{"a=1", "a=2"}, "-", false},
		{[]string{"A=1"}, "-", false},
		{[]string{"_a=1"}, "-", false},
		{[]string{"a"}, "-", false},
		{[]string{"a="}, "-", false},
		{[]string{"=1"}, "-", false},
		{[]string{"a=b=c"}, "-", false},
		{[]string{"a=\x01"}, "-", false},
		{[]string{"a=\xc3\xa4"}, "-", false},
		{[]string{strings.Repeat("k", 256) + "=" + strings.Repeat("v", 255)}, strings.Repeat("k", 256) + "=" + strings.Repeat("v", 255), true},
		{[]string{strings.Repeat("k", 257) + "=v"}, "-", false},
		{[]string{"k=" + strings.Repeat("v", 257)}, "-", false},
		{[]string{many(32)}, many(32), true},
		{[]string{many(33)}, "-", false},
		{[]string{many(31), "x=1", "y=2"}, "-", false},
		// Long members go first, the last of them before those in front of it; then the last.
		{[]string{"a=1", long, "b=2", "c=" + strings.Repeat("y", 250), "d=" + strings.Repeat("z", 120)}, "a=1," + long + ",b=2,d=" + strings.Repeat("z", 120), false},
		{[]string{"a=" + strings.Repeat("1", 120), "b=" + strings.Repeat("2", 120), "c=" + strings.Repeat("3", 120), "d=" + strings.Repeat("4", 120), "e=" + strings.Repeat("5", 120)},
			"a=" + strings.Repeat("1", 120) + ",b=" + strings.Repeat("2", 120) + ",c=" + strings.Repeat("3", 120) + ",d=" + strings.Repeat("4", 120), false},
	} {
		var s State
		ok := true
		for _, line := range c.lines {
			ok = ok && s.AddLine([]byte(line))
		}
		got := "-"
		if ok {
			got = string(s.Append(nil))
		}
		if got != c.want || ok && (s.Fits() != c.fits || s.Empty() != (got == "")) {
			t.Errorf("%.60q: %q, want %q; fits %v", c.lines, got, c.want, s.Fits())
		}
	}
}

func TestNoAllocations(t *testing.T) {
	parent, state, buf := []byte("00-"+trace+"-"+span+"-01"), []byte(strings.Repeat("k=v,", 1)+"b="+strings.Repeat("x", 200)), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		c, ok := ParseParent(parent)
		var s State
		if !ok || !s.AddLine(state) || s.Empty() {
			t.Fatal("not read")
		}
		s.Append(AppendB3(AppendParent(buf, &c), &c))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzContext: what is read is written as what is read again, and no list grows or is longer than it may be.
func FuzzContext(f *testing.F) {
	for _, s := range []string{"00-" + trace + "-" + span + "-01", "cc-" + trace + "-" + span + "-01-x", trace + "-" + span + "-d-" + span, "d", "a=1, b=2", "a=1,a=1", strings.Repeat("k=v,", 40)} {
		f.Add([]byte(s), []byte(span), []byte("x=y"))
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		if got, ok := ParseParent(a); ok {
			written := AppendParent(nil, &got)
			if again, ok := ParseParent(written); !ok || again != got || len(written) != ParentSize || !bytes.HasPrefix(a[2:], written[2:53]) {
				t.Fatalf("%q is %+v, written %q", a, got, written)
			}
		}
		for _, read := range []func() (Context, bool){func() (Context, bool) { return ParseB3(a) }, (&B3Fields{a, b, c, nil}).Parse} {
			if got, ok := read(); ok && got.Valid() && got.Sampling != Undecided {
				if again, ok := ParseB3(AppendB3(nil, &got)); !ok || again != got {
					t.Fatalf("%q is %+v", a, got)
				}
			}
		}
		var s State
		if !s.AddLine(a) || !s.AddLine(c) {
			return
		}
		line := s.Append(nil)
		var again State
		if len(line) > MaxState || len(line) > len(a)+len(c)+1 || !again.AddLine(line) || again.Empty() != (len(line) == 0) || s.Fits() && again.n != s.n {
			t.Fatalf("%q and %q become %q", a, c, line)
		}
	})
}
