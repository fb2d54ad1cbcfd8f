package proxy

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
)

func asking() *Exchange {
	cfg := &Config{Clock: at(0)}
	ex := &Exchange{attempts: attempts{w: &Worker{cfg: cfg}, cfg: cfg}}
	ex.client = Client{Addr: netip.MustParseAddrPort("127.0.0.1:33430"), Local: netip.MustParseAddrPort("127.0.0.30:8080"), Secure: true, ServerName: "a.test"}
	ex.req = &Head{Method: []byte("GET"), Target: []byte("/A?b"), Path: []byte("/A"), Query: []byte("?b"), Minor: 1,
		Fields: []Field{{Name: []byte("x-in"), Value: []byte(`a, "Q"]`)}}}
	return ex
}

// TestLongUniqueIDsAreCut: what clients say makes an id no longer than it may be, however often the format repeats it.
func TestLongUniqueIDsAreCut(t *testing.T) {
	for _, format := range []string{
		strings.Repeat("%[req.hdr(big)]", 60), strings.Repeat("%{+E}[req.hdr(big)]", 60), "%HP%HQ%HU%HM", "%[path]%[query]%[url]%[method]", strings.Repeat("%{+Q}HP", 9),
	} {
		u, warnings, err := NewUniqueID(UniqueIDConfig{Format: format, Header: "X-Id"})
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		ex, counts, big := asking(), new(bound.Counts), []byte(strings.Repeat(`"`, 60_000))
		ex.w.cfg.Bounds = counts
		*ex.req = Head{Method: big, Target: big, Path: big, Query: big, Fields: []Field{{Name: []byte("big"), Value: big}}}
		if got := u.value(ex); len(got) != maxUniqueID || counts.Of(bound.UniqueID) != 1 {
			t.Errorf("%.20s: %d bytes, counted %d times", format, len(got), counts.Of(bound.UniqueID))
		}
		if held := cap(ex.scratch.Begin(0)); held > 16<<10 {
			t.Errorf("%.20s: the memory of the exchange grew to %d bytes", format, held)
		}
		*ex.req = Head{Method: big[:1], Target: big[:1], Path: big[:1], Query: big[:1], Fields: []Field{{Name: []byte("big"), Value: big[:1]}}}
		if got := u.value(ex); len(got) >= maxUniqueID || counts.Of(bound.UniqueID) != 1 {
			t.Errorf("%.20s of little: %d bytes, counted %d times", format, len(got), counts.Of(bound.UniqueID))
		}
	}
}

func TestUniqueIDFormats(t *testing.T) {
	for _, c := range []struct {
		format, want string
		unknown      int
	}{
		{"%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid", "7F000001:8296_7F00001E:1F90_4F4B6AA9_0001:790E", 0},
		{"%ci:%cp_%fi:%fp_%Ts_%rt:%pid", "127.0.0.1:33430_127.0.0.30:8080_1330342569_1:30990", 0},
		{"%{+X}ci-%ci", "7F000001-127.0.0.1", 0},
		{"%{+X}o%{-X}ci-%ci", "127.0.0.1-7F000001", 0},
		{"%{+X}o %ms", "07", 0},
		{"%ms", "007", 0},
		{"%{+Q}HM %HP%HQ %HU %HV", `"GET" /A?b /A?b HTTP/1.1`, 0},
		{"%[src]:%[src_port] %[dst] %[dst_port]", "127.0.0.1:33430 127.0.0.30 8080", 0},
		{"%[method,lower]-%[path]-%[query]", "get-/A-b", 0},
		{`%[req.hdr(X-In)]|%{+E}[req.hdr(X-In),upper]`, `"Q"]|\"Q\"\]`, 0},
		{"%[req.hdr(none)]", "-", 0},
		{"  a   b  ", "a b", 0},
		{"100%%", "100%", 0},
		{"%H %ft %f", "box fe_sni~ fe_sni", 0},
		{"%[uuid(5)] %[src(1)]", "- -", 2},
		{"%T", "27/Feb/2012:11:36:09 +0000", 0},
		{"%bi %[bogus] %[src,bogus]", "- - -", 3},
	} {
		u, warnings, err := NewUniqueID(UniqueIDConfig{Format: c.format, Header: "X-Id", PID: 0x790E, Host: "box"})
		if err != nil || len(warnings) != c.unknown {
			t.Errorf("%q: %v %v", c.format, warnings, err)
			continue
		}
		ex := asking()
		ex.w.cfg.Clock = at(1330342569)
		if got := string(u.value(ex)); got != c.want {
			t.Errorf("%q gives %q, want %q", c.format, got, c.want)
		}
	}
	ex := asking()
	ex.client = Client{Addr: netip.MustParseAddrPort("[2001:db8::1]:80"), Local: netip.MustParseAddrPort("[::ffff:10.0.0.1]:1")}
	u, _, _ := NewUniqueID(UniqueIDConfig{Format: "%ci %{+X}ci %fi %[uuid] %rt", Header: "X-Id"})
	pattern := regexp.MustCompile(`^2001:db8::1 20010DB8000000000000000000000001 10\.0\.0\.1 [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} [12]$`)
	first, second := string(u.value(ex)), string(u.value(ex))
	if !pattern.MatchString(first) || !pattern.MatchString(second) || first == second {
		t.Errorf("%q, %q", first, second)
	}
}

// at is a clock that stands at a second.
type at int64

func (at) Now() int64            { return 0 }
func (c at) Wall() time.Time     { return time.Unix(int64(c), 7e6) }
func (at) NewTimer(func()) Timer { return nil }
func (at) Post(func()) bool      { return false }

func TestUniqueIDMistakes(t *testing.T) {
	for _, format := range []string{"%", "%{X", "%{Z}ci", "%{}ci", "%[src", "a\nb", "%1"} {
		if _, _, err := NewUniqueID(UniqueIDConfig{Format: format, Header: "x"}); err == nil || !strings.Contains(err.Error(), "cannot use unique id format") {
			t.Errorf("%q: %v", format, err)
		}
	}
	if _, _, err := NewUniqueID(UniqueIDConfig{Format: "a", Header: "a b"}); err == nil {
		t.Error("a header called a b")
	}
}

// FuzzUniqueID: whatever compiles gives a value without controls.
func FuzzUniqueID(f *testing.F) {
	for _, s := range []string{"%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid", "%{+Q,-E}HM%%", "%[req.hdr(x-in),lower]", "%[uuid]", "%T %ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		u, _, err := NewUniqueID(UniqueIDConfig{Format: format, Header: "x"})
		if err != nil {
			return
		}
		for _, c := range u.value(asking()) {
			if c < ' ' && c != '\t' || c == 0x7f {
				t.Fatalf("%q gives a control character", format)
			}
		}
	})
}
