package http1

import (
	"errors"
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

// refusal is a head and the reason it must be refused with.
type refusal struct{ name, raw, reason string }

// reasonOf is the stable code of err, "" for nil.
func reasonOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *Error", err)
	}
	if e.Status < 400 || e.Reason == "" || !strings.HasPrefix(e.Clause, "RFC ") {
		t.Errorf("error %+v names no status, reason or clause", e)
	}
	return e.Reason
}

func parseRequest(raw string, lim Limits) (*Request, error) {
	r := new(Request)
	err := ParseRequest([]byte(raw), r, lim)
	return r, err
}

// accept parses a request that must be accepted.
func accept(t *testing.T, raw string) *Request {
	t.Helper()
	r, err := parseRequest(raw, Limits{})
	if err != nil {
		t.Fatalf("%q refused: %v", raw, err)
	}
	return r
}

// refuseRequests checks that each request is refused for its reason, and that
// FindHeadEnd either finds its whole length or refuses it too.
func refuseRequests(t *testing.T, status int, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		_, err := parseRequest(c.raw, Limits{})
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: %q refused for %q, not %q", c.name, c.raw, got, c.reason)
			continue
		}
		if got := err.(*Error).Status; got != status {
			t.Errorf("%s: status %d, not %d", c.name, got, status)
		}
		n, err := FindHeadEnd([]byte(c.raw), 0, Limits{})
		if err == nil && n != len(c.raw) && n != 0 {
			t.Errorf("%s: head of %q ends at %d", c.name, c.raw, n)
		}
	}
}

// get is a GET request with the given field lines after Host.
func get(lines ...string) string {
	return "GET / HTTP/1.1\r\nHost: a.example\r\n" + join(lines)
}

func join(lines []string) string {
	s := ""
	for _, l := range lines {
		s += l + "\r\n"
	}
	return s + "\r\n"
}

// show writes fields as one comparable text.
func show(fields []field.Field) string {
	s := ""
	for _, f := range fields {
		s += string(f.Name) + "=" + string(f.Value) + ";"
	}
	return s
}

func strs(list [][]byte) string {
	s := ""
	for _, b := range list {
		s += string(b) + ";"
	}
	return s
}
