package peer

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"turnout/bench/load"
	"turnout/bench/report"
	"turnout/bench/site"
)

func TestParseStat(t *testing.T) {
	got := parseStat("17 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 1234 56 0 0 20 0 3 0 99\n")
	if got != (cpuTime{total: 12900 * time.Millisecond, user: 12340 * time.Millisecond, system: 560 * time.Millisecond}) {
		t.Errorf("got %+v", got)
	}
	if d := got.sub(cpuTime{total: time.Second, user: 340 * time.Millisecond}); d.total != 11900*time.Millisecond || d.user != 12*time.Second {
		t.Errorf("difference is %+v", d)
	}
	if share := (cpuTime{user: 1, system: 3}).userShare(); share != 0.25 {
		t.Errorf("user share is %v, want 0.25", share)
	}
	for _, bad := range []string{"", "17 (x) S 1 2 3", "17 x S 1 2 3 4 5 6 7 8 9 10 11 12 13", "17 (x) S 1 2 3 4 5 6 7 8 9 10 -1 56"} {
		if site.Try(func() { got = parseStat(bad) }) == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

func TestParseCore(t *testing.T) {
	text := "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 9 9 9 9 9 9 9 9 0 0\ncpu1 100 20 30 4000 500 6 7 8 90 10\nintr 1\n"
	got := parseCore(text, 1)
	if want := (coreTime{busy: 1710 * time.Millisecond, steal: 80 * time.Millisecond, idle: 45 * time.Second}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if d := got.sub(coreTime{busy: 710 * time.Millisecond, steal: 30 * time.Millisecond, idle: 40 * time.Second}); d.busy != time.Second || d.steal != 50*time.Millisecond || d.idle != 5*time.Second {
		t.Errorf("difference is %+v", d)
	}
	for _, core := range []int{2, 11} {
		if site.Try(func() { parseCore(text, core) }) == nil {
			t.Errorf("core %d was found", core)
		}
	}
	if site.Try(func() { parseCore("cpu0 1 2 3 4 5 6 7 -8", 0) }) == nil {
		t.Error("a negative time was accepted")
	}
}

func TestChooseCases(t *testing.T) {
	for list, want := range map[string]string{
		"all":                caseNames(),
		"h1-64":              "h1-64",
		"tls-1m, h1-64":      "h1-64, tls-1m",
		"tls-*":              "tls-64, tls-1m, tls-close",
		"routes-*,h1-64,one": "error",
		"":                   "error",
	} {
		cases, err := chooseCases(list)
		var names []string
		for _, c := range cases {
			names = append(names, c.name)
		}
		got := strings.Join(names, ", ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", list, got, want)
		}
	}
}

// micros is a sample of requests that took so many microseconds each.
func micros(n int) sample {
	return sample{reading: reading{proxy: cpuTime{total: time.Duration(n) * 100 * time.Microsecond}}, requests: 100, elapsed: time.Second}
}

// TestSummaryUsesRatiosWithinRounds: the second round ran while the machine was busy, and only its ratio counts.
func TestSummaryUsesRatiosWithinRounds(t *testing.T) {
	turnout := &side{name: report.Turnout, samples: []sample{micros(10), micros(40), micros(12)}}
	turnout.samples[1].failures = 2
	peer := &side{proxy: &proxy{Process: site.StartProcess("cat", exec.Command("cat"), site.AnyCore, nil)}, name: report.Least, samples: []sample{micros(20), micros(50), micros(20)}}
	peer.samples[2].failures = 1
	defer peer.Kill()
	s := peer.summary(turnout)
	if *s.Ratio != (report.Range{Median: 0.6, Lowest: 0.5, Most: 0.8}) || s.Micros != 20 || s.Failures != 1 || s.Peak <= 0 {
		t.Errorf("%+v, ratio %+v", s, s.Ratio)
	}
}

// TestCheckWork takes a correct exchange and spoils one thing at a time.
func TestCheckWork(t *testing.T) {
	s := testSite(t, 1, false, true)
	addr := netip.MustParseAddrPort("127.0.0.1:8080")
	request := "GET /probe HTTP/1.1\r\nhost: r00000.bench.test\r\nx-forwarded-for: 192.0.2.1\r\n" +
		"x-forwarded-host: r00000.bench.test\r\nx-forwarded-port: 8080\r\nx-forwarded-proto: http\r\n" +
		"forwarded: for=127.0.0.1;host=r00000.bench.test;proto=http\r\nx-forwarded-for: 127.0.0.1"
	answer := "HTTP/1.1 200 OK\r\ncontent-length: 128\r\nset-cookie: " + cookieName(0) + "=" + s.cookieValue(0) + "; path=/; HttpOnly"
	check := func(full bool, old, changed string) error {
		return checkWork(load.Exchange{
			Request: []byte(strings.Replace(request, old, changed, 1)),
			Answer:  []byte(strings.Replace(answer, old, changed, 1)),
			Body:    load.Body(0),
		}, s, addr, full)
	}
	if err := check(true, "", ""); err != nil {
		t.Fatalf("correct exchange: %v", err)
	}
	for _, c := range []struct{ old, changed, want string }{
		{" 200 ", " 503 ", "answer is"},
		{"host: r0", "host: R0", "host"},
		{"GET /probe HTTP/1.1", "GET /probe HTTP/1.1\r\nproxy: forged", "got proxy"},
		{"GET /probe HTTP/1.1", "GET /probe HTTP/1.1\r\nx-ssl-client-dn: forged", "x-ssl-client-dn"},
		{"x-forwarded-for: 127", "x-other: 127", "x-forwarded-for"},
		{"port: 8080", "port: 80", "x-forwarded-port"},
		{"proto: http", "proto: https", "x-forwarded-proto"},
		{"forwarded: for=", "forwarded: by=", "got forwarded"},
		{"; HttpOnly", "", "set-cookie"},
		{"set-cookie", "x-cookie", "set-cookie"},
	} {
		if err := check(true, c.old, c.changed); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want a complaint about %s", c.changed, c.old, err, c.want)
		}
	}
	s.rules = true
	if err := check(true, "", ""); err == nil || !strings.Contains(err.Error(), "x-agent") || !strings.Contains(err.Error(), "strict-transport-security") {
		t.Errorf("a site with rules: %v", err)
	}
	request += "\r\nx-agent: probe"
	answer += "\r\nstrict-transport-security: " + hsts + "\r\nx-frame-options: DENY"
	if err := check(true, "", ""); err != nil {
		t.Errorf("a site with rules: %v", err)
	}
	if err := check(false, "", ""); err == nil || !strings.Contains(err.Error(), "want none") {
		t.Errorf("cookie without full work: %v", err)
	}
	if err := check(false, "set-cookie", "x-cookie"); err != nil {
		t.Errorf("least work: %v", err)
	}
}
