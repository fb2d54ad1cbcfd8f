package site

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExitCodes: what a scenario comes to, after all that is to be cleaned up was.
func TestExitCodes(t *testing.T) {
	for name, x := range map[string]struct {
		run  func(*T)
		args []string
		code int
		says string
	}{
		"passes":        {run: func(*T) {}},
		"misses":        {run: func(t *T) { t.Failf("%d is too much", 3) }, code: 1, says: "FAILED 3 is too much\nx: 1 bounds were missed"},
		"cannot":        {run: func(*T) { Check(errors.New("a reason")) }, code: 1, says: "x: a reason"},
		"cannot here":   {run: func(*T) { Refuse(errors.New("a reason")) }, code: 2, says: "x: a reason"},
		"another's":     {run: func(t *T) { t.Exit(7) }, code: 7},
		"interrupted":   {run: func(t *T) { Check(syscall.Kill(syscall.Getpid(), syscall.SIGTERM)); t.Wait(time.Hour) }, code: 1, says: "interrupted"},
		"wrong flag":    {run: func(*T) {}, args: []string{"-nosuch"}, code: 2},
		"word":          {run: func(*T) {}, args: []string{"word"}, code: 2, says: `"word"`},
		"flag":          {run: func(t *T) { Check(fmt.Errorf("by %s", t.Program)) }, args: []string{"-turnout", "other"}, code: 1, says: "by other"},
		"usual program": {run: func(t *T) { Check(fmt.Errorf("by %s", t.Program)) }, code: 1, says: "by bin/turnout"},
	} {
		var order []string
		s := Scenario{Name: "x", Flags: func(*flag.FlagSet) func(*T) {
			return func(t *T) {
				t.Cleanup(func() { order = append(order, "second") })
				t.Cleanup(func() { order = append(order, "first") })
				x.run(t)
			}
		}}
		var out bytes.Buffer
		if code := Main([]Scenario{s}, nil, append([]string{"x"}, x.args...), &out, &out); code != x.code || !strings.Contains(out.String(), x.says) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", name, code, out.String(), x.code, x.says)
		}
		if ran := strings.Join(order, " "); ran != "first second" && !(ran == "" && strings.Contains("wrong flag, word", name)) {
			t.Errorf("%s: cleaned up %q", name, ran)
		}
	}
}

func TestMainFindsWhatIsMeant(t *testing.T) {
	var out bytes.Buffer
	scenarios := []Scenario{{Name: "a", About: "one thing"}, {Name: "b", About: "another"}}
	roles := []Role{{"works", func(_ context.Context, args []string) error { fmt.Fprint(&out, args); return nil }}, {"fails", func(context.Context, []string) error { return errors.New("a reason") }}}
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 0, "a            one thing\nb            another\n"}, {[]string{"list"}, 0, "another"}, {[]string{"c"}, 2, `no scenario "c"`},
		{[]string{"works", "1", "2"}, 0, "[1 2]"}, {[]string{"fails"}, 1, "fails: a reason"},
	} {
		out.Reset()
		if code := Main(scenarios, roles, x.args, &out, &out); code != x.code || !strings.Contains(out.String(), x.says) {
			t.Errorf("%q: exit code %d, %q", x.args, code, out.String())
		}
	}
}

func TestLatencyOf(t *testing.T) {
	var times []time.Duration
	for i := range 101 {
		times = append(times, time.Duration(100-i))
	}
	if l := LatencyOf(times); l != (Latency{50, 99, 100}) {
		t.Errorf("got %v", l)
	}
	if l := LatencyOf(nil); l != (Latency{}) {
		t.Errorf("of nothing: %v", l)
	}
}

// TestPaced: each client asks until the time is over, and one that fails no more.
func TestPaced(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	bad := errors.New("bad")
	var asked [2]int
	err := Try(func() {
		Paced(ctx, 2, time.Millisecond, func(client, n int) {
			asked[client]++
			if client == 1 && n == 2 {
				Check(bad)
			}
		})
	})
	if !errors.Is(err, bad) || asked[0] <= 3 || asked[1] != 3 {
		t.Errorf("%v: %v", asked, err)
	}
}

// TestTogether: everything is done once, so many at a time, and what ends one of them is reported.
func TestTogether(t *testing.T) {
	var all [20]int
	Together(len(all), 3, func(i int) { all[i]++ })
	for i, n := range all {
		if n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	bad := errors.New("bad")
	err := Try(func() { Together(2, 2, func(i int) { Checkf([]error{nil, bad}[i], "cannot do %d", i) }) })
	if !errors.Is(err, bad) || err.Error() != "cannot do 1: bad" {
		t.Errorf("got %v", err)
	}
}

func TestChoose(t *testing.T) {
	all := []string{"one", "two", "three"}
	for list, want := range map[string]string{"all": "[one two three]", "three, one": "[one three]", "t*": "[two three]", "four": "[]", "": "[]", "one,x*": "[]"} {
		got, err := Choose(list, ",", all, func(v string) string { return v })
		if fmt.Sprint(got) != want || (err == nil) != (len(got) > 0) {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
}
