package accesslog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"turnout/proxy"
)

// TestFilter: what a filter names is always written, and of the rest a share, whose lines say so.
func TestFilter(t *testing.T) {
	const records = 2000
	statuses := func(text string) *Statuses {
		s, err := ParseStatuses(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ok := func(*proxy.Record) {}
	failed := func(r *proxy.Record) { r.Status = 503 }
	none := func(r *proxy.Record) { r.Status = 0 }
	slow := func(r *proxy.Record) { r.Total = time.Second }
	tunnel := func(r *proxy.Record) { r.Total, r.Tunnel = time.Hour, true }
	for _, c := range []struct {
		name        string
		filter      Filter
		of          func(*proxy.Record)
		least, most int // of 2,000 records
		says        bool
	}{
		{"no filter", Filter{}, ok, records, records, false},
		{"of a status", Filter{Statuses: statuses("5xx")}, failed, records, records, false},
		{"of another", Filter{Statuses: statuses("5xx")}, ok, 0, 0, false},
		{"without a status", Filter{Statuses: statuses("5xx")}, none, 0, 0, false},
		{"without a status, which is asked for", Filter{Statuses: statuses("0,5xx")}, none, records, records, false},
		{"slow", Filter{Slow: time.Second}, slow, records, records, false},
		{"fast", Filter{Slow: time.Second}, ok, 0, 0, false},
		{"long-lived", Filter{Slow: time.Second}, tunnel, 0, 0, false},
		{"slow, of another status", Filter{Slow: time.Second, Statuses: statuses("404")}, slow, records, records, false},
		{"a share of all", Filter{Sample: 0.1}, ok, 100, 300, true},
		{"a share of what no filter names", Filter{Statuses: statuses("5xx"), Sample: 0.1}, ok, 100, 300, true},
		{"what a filter names beside a share", Filter{Statuses: statuses("5xx"), Sample: 0.1}, failed, records, records, false},
		{"the whole rest", Filter{Statuses: statuses("5xx"), Sample: 1}, ok, records, records, false},
		{"nothing", Filter{Sample: -1}, ok, 0, 0, false},
	} {
		var out bytes.Buffer
		l, err := New(Config{Writer: &out, Filter: c.filter, Slots: 1 << 14})
		if err != nil {
			t.Fatal(err)
		}
		r := sample()
		c.of(r)
		for range records {
			l.Log(r)
		}
		l.Close()
		n, says := strings.Count(out.String(), "\n"), strings.Count(out.String(), `,"sample":0.1`)
		if n < c.least || n > c.most || c.says && says != n || !c.says && says != 0 {
			t.Errorf("%s: %d lines, %d of a share, want %d to %d", c.name, n, says, c.least, c.most)
		}
		if s := l.Stats(); s.Written != uint64(n) || s.Skipped != uint64(records-n) || s.Dropped != 0 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if _, err := New(Config{Writer: new(bytes.Buffer), Filter: Filter{Slow: -1}}); err == nil {
		t.Error("a negative time is taken")
	}
}

// TestFilteredRecordsAllocateNothing: what is left out costs next to nothing.
func TestFilteredRecordsAllocateNothing(t *testing.T) {
	l, err := New(Config{Writer: new(bytes.Buffer), Filter: Filter{Sample: 1e-9, Slow: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := sample()
	if n := testing.AllocsPerRun(1000, func() { l.Log(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseStatuses(t *testing.T) {
	f := func(text string, has, hasNot []int) {
		t.Helper()
		s, err := ParseStatuses(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			return
		}
		for _, n := range has {
			if !s.has(n) {
				t.Errorf("%q has no %d", text, n)
			}
		}
		for _, n := range append(hasNot, -1, 1000) {
			if s.has(n) {
				t.Errorf("%q has %d", text, n)
			}
		}
	}
	f("404", []int{404}, []int{0, 403, 405})
	f("5xx", []int{500, 599}, []int{499, 600})
	f("0, 400-403,9xx", []int{0, 400, 403, 900, 999}, []int{1, 399, 404, 899})
	if s, err := ParseStatuses(""); s != nil || err != nil {
		t.Errorf("no text: %v, %v", s, err)
	}
	for _, text := range []string{",", "x", "xxx", "0xx", "5x", "500-", "-5", "600-500", "1000", "404,", "4.4"} {
		if s, err := ParseStatuses(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
	for text, want := range map[string]float64{"": 0, "0": -1, "1": 1, "0.25": 0.25} {
		if got, err := ParseSample(text); got != want || err != nil {
			t.Errorf("share %q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "-1", "NaN", "x", "10%"} {
		if got, err := ParseSample(text); err == nil {
			t.Errorf("share %q is %v", text, got)
		}
	}
}

func FuzzParseStatuses(f *testing.F) {
	for _, text := range []string{"", "404", "5xx,0", "500-504", "-", "9xx, 1", "999-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseStatuses(text); err == nil && s != nil && s.bits == new(Statuses).bits {
			t.Errorf("%q is an empty set", text)
		}
	})
}
