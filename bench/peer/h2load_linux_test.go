package peer

import (
	"strings"
	"testing"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
)

const h2loadSays = `starting benchmark...
spawning thread #0: 4 total client(s). Timing-based test with 0s of warm-up time and 1s of main duration for measurements.
Application protocol: h2

finished in 1.00s, 20312.00 req/s, 1.02MB/s
requests: 20312 total, 20328 started, 20312 done, 20312 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 20312 2xx, 0 3xx, 0 4xx, 0 5xx
`

func TestReadH2load(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		failures       uint64
		wrong          string
	}{
		{name: "all well"},
		{name: "failed", old: "0 failed", new: "3 failed", failures: 3},
		{name: "errored and timed out", old: "0 errored, 0 timeout", new: "2 errored, 1 timeout", failures: 3},
		{name: "503", old: "0 5xx", new: "7 5xx", failures: 7},
		{name: "HTTP/1.1", old: "protocol: h2", new: "protocol: http/1.1", wrong: "HTTP/2 was not spoken"},
		{name: "no counts", old: "requests:", new: "answers:", wrong: "cannot read what h2load counted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := readH2load(load.Result{Requests: 5}, strings.Replace(h2loadSays, c.old, c.new, 1))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil || res.Failures != c.failures || res.Requests != 5 || (res.First != nil) != (c.failures > 0) {
				t.Errorf("%+v, %v; want %d failures", res, err, c.failures)
			}
		})
	}
}

func TestReadLog(t *testing.T) {
	text := "1000\t200\t50\n1500\t200\t9000\n3000\t200\t300\n4000\t200\t100\n5000\t200\t200\n"
	if got := readLog(text, 2*time.Millisecond); got != (site.Latency{P50: 200 * time.Microsecond, P99: 200 * time.Microsecond, Max: 300 * time.Microsecond}) {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{"1 2\n", "a\t200\t5\n"} {
		if site.Try(func() { readLog(bad, 0) }) == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestWrkFailures(t *testing.T) {
	for text, want := range map[string]uint64{
		"  100 requests in 1.00s, 1MB read\n": 0,
		"  100 requests in 1.00s, 1MB read\n  Socket errors: connect 1, read 2, write 3, timeout 4\n": 10,
		"  100 requests in 1.00s, 1MB read\n  Non-2xx or 3xx responses: 7\n":                          7,
	} {
		if n, err := wrkFailures(text); err != nil || n != want {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
	if _, err := wrkFailures("unable to connect"); err == nil {
		t.Error("nothing was counted, and that is no error")
	}
}
