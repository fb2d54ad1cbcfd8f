package http1

import (
	"strings"
	"testing"
)

// RFC 9112 section 2: messages and their heads.

func TestSkipEmptyLines(t *testing.T) {
	for _, c := range []struct {
		in string
		n  int
	}{{"", 0}, {"\r", 0}, {"\r\n", 2}, {"\r\n\r\nGET", 4}, {"\r\n\r", 2}, {"GET\r\n", 0}, {"\n\r\n", 0}} {
		if n := SkipEmptyLines([]byte(c.in)); n != c.n {
			t.Errorf("%q: %d, not %d", c.in, n, c.n)
		}
	}
}

// feed gives raw to FindHeadEnd in steps of k bytes, as a connection would.
func feed(raw string, k int, lim Limits) (n int, err error) {
	for seen := 0; seen < len(raw); {
		end := min(seen+k, len(raw))
		if n, err = FindHeadEnd([]byte(raw[:end]), seen, lim); n != 0 || err != nil {
			return n, err
		}
		seen = end
	}
	return 0, nil
}

func TestFindHeadEndAtEverySplit(t *testing.T) {
	head := get("A: 1", "B: 2")
	for k := 1; k <= len(head)+4; k++ {
		n, err := feed(head+"body", k, Limits{})
		if n != len(head) || err != nil {
			t.Fatalf("steps of %d: %d, %v; the head is %d long", k, n, err, len(head))
		}
	}
	for cut := range head {
		if n, err := FindHeadEnd([]byte(head[:cut]), 0, Limits{}); n != 0 || err != nil {
			t.Fatalf("first %d bytes: %d, %v; they are incomplete", cut, n, err)
		}
	}
}

func TestFindHeadEndRefusesEarly(t *testing.T) {
	for _, c := range []refusal{
		{"LF first", "\n", "bare-lf"},
		{"LF ends the line", "GET / HTTP/1.1\n", "bare-lf"},
		{"LF ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\n", "bare-lf"},
		{"LF in a complete head", "GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n", "bare-lf"},
		{"CR in the line", "GET / HTTP/1.1\rHost", "bare-cr"},
		{"CR CR LF", "GET / HTTP/1.1\r\r\n", "bare-cr"},
		{"CR first", "\rG", "bare-cr"},
		{"empty line first", "\r\nGET", "empty-line"},
		{"NUL", "GET / HTTP/1.1\r\nA: \x00", "nul"},
		{"NUL first", "\x00", "nul"},
		{"TLS client hello", "\x16\x03\x01", "method"},
		{"space first", " GET", "leading-space"},
	} {
		for _, k := range []int{1, 3, 1000} {
			_, err := feed(c.raw, k, Limits{})
			if got := reasonOf(t, err); got != c.reason {
				t.Errorf("%s in steps of %d: %q refused for %q, not %q", c.name, k, c.raw, got, c.reason)
			}
		}
	}
	if n, err := FindHeadEnd([]byte("\r"), 0, Limits{}); n != 0 || err != nil {
		t.Errorf("half an empty line: %d, %v", n, err)
	}
}

func TestFindHeadEndBoundsTheHead(t *testing.T) {
	const line = "GET / HTTP/1.1\r\nAccept: */*\r\nA: b\r\n"
	for _, c := range []struct {
		name, raw string
		limit     int
		reason    string
	}{
		{"exact", line + "Host: a\r\n\r\n", 46, ""},
		{"one too long", line + "Host: a\r\n\r\n", 45, "head-size"},
		{"incomplete at the limit", line + "Host: abcd", 45, "head-size"},
		{"incomplete below it", line + "Host: abcd", 46, ""},
		{"a whole line over the limit", "GET /" + strings.Repeat("x", 60) + " HTTP/1.1\r\nHost: a\r\n\r\n", 64, "target-size"},
		{"a line that leaves no room", "GET /" + strings.Repeat("x", 40) + " HTTP/1.1\r\nHost: a\r\n\r\n", 64, "target-size"},
		{"one that leaves half", "GET /" + strings.Repeat("x", 10) + " HTTP/1.1\r\nHost: " + strings.Repeat("a", 60) + "\r\n\r\n", 64, "head-size"},
		{"endless target", "GET /" + strings.Repeat("x", 60), 64, "target-size"},
		{"default", "GET / HTTP/1.1\r\nHost: " + strings.Repeat("x", DefaultHeadBytes), 0, "head-size"},
		{"below the default", "GET / HTTP/1.1\r\nHost: " + strings.Repeat("x", DefaultHeadBytes-30), 0, ""},
	} {
		for _, k := range []int{1, 7, 1 << 20} {
			_, err := feed(c.raw, k, Limits{HeadBytes: c.limit})
			if got := reasonOf(t, err); got != c.reason {
				t.Errorf("%s in steps of %d: %q, not %q", c.name, k, got, c.reason)
			}
			if err != nil && err.(*Error).Status != map[string]int{"head-size": 431, "target-size": 414}[c.reason] {
				t.Errorf("%s: status %d", c.name, err.(*Error).Status)
			}
		}
	}
}

func TestParseWantsExactlyOneHead(t *testing.T) {
	head := get("A: 1")
	for cut := range head {
		if _, err := parseRequest(head[:cut], Limits{}); err == nil {
			t.Errorf("first %d bytes accepted", cut)
		}
	}
	_, err := parseRequest(head+"x", Limits{})
	if reasonOf(t, err) != "empty-line" {
		t.Errorf("bytes after the head: %v", err)
	}
}

func TestErrorText(t *testing.T) {
	_, err := parseRequest(get("A : b"), Limits{})
	if got := err.Error(); got != "cannot parse message: space-before-colon (RFC 9112 section 5.1)" {
		t.Errorf("%q", got)
	}
	for f := faultNone + 1; f < faultCount; f++ {
		q, s := requestErrors[f], responseErrors[f]
		if q.Status < 400 || q.Reason == "" || q.Clause == "" || s.Status != 502 || s.Reason != q.Reason {
			t.Errorf("fault %d: %+v, %+v", f, q, s)
		}
	}
}
