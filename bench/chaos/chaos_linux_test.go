package chaos

import (
	"flag"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/bench/site"
)

// TestFaults makes the faults that need no namespaces, for a moment each. Those that need them, which lose packets and fill
// disks, and need root for it, are make chaos alone; so are those about times of a second, which a machine that runs tests
// cannot promise.
func TestFaults(t *testing.T) {
	program := filepath.Join(t.TempDir(), "turnout")
	if out, err := exec.Command("go", "build", "-o", program, "turnout/cmd/turnout").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the router: %v: %s", err, out)
	}
	chosen := slices.DeleteFunc(faults(), func(f *fault) bool {
		return f.root || f.timeout > 0 || testing.Short() && !slices.Contains([]string{"resets", "manifests gone"}, f.name)
	})
	var said strings.Builder
	s := site.Scenario{Name: "faults", Flags: func(*flag.FlagSet) func(*site.T) {
		return func(s *site.T) { perform(s, t.TempDir(), chosen, 300*time.Millisecond, 10) }
	}}
	if code, err := s.Run(t.Context(), []string{"-turnout", program}, &said); code != 0 {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// TestJudge: what is not as it is wanted is reported.
func TestJudge(t *testing.T) {
	good := func() *result {
		return &result{
			fault:     &fault{name: "x", want: bounds{allowed: []string{"502"}, served: 0.5, returns: time.Second}},
			victims:   summary{asked: 10, outcomes: map[string]int{fine: 6, "502": 4}},
			neighbors: summary{asked: 10, outcomes: map[string]int{fine: 10}},
			before:    vitals{goroutines: 10, descriptors: 10, resident: 50 << 20, upstream: 2},
			after:     vitals{goroutines: 11, descriptors: 12, resident: 60 << 20, upstream: 3},
		}
	}
	for _, tc := range []struct {
		want   string
		change func(r *result)
	}{
		{"", func(*result) {}},
		{"nobody asked", func(r *result) { r.victims = summary{asked: 0, outcomes: nil} }},
		{"4 requests: 504", func(r *result) { r.victims.outcomes = map[string]int{fine: 6, "504": 4} }},
		{"40 % of the requests were served", func(r *result) { r.victims.outcomes = map[string]int{fine: 4, "502": 6} }},
		{"the slowest request took 1.5s", func(r *result) { r.victims.Max = 1500 * time.Millisecond }},
		{"1 requests of the other route failed: 9 200, 1 503", func(r *result) { r.neighbors.outcomes = map[string]int{fine: 9, "503": 1} }},
		{"the slowest request of the other route took 2.0s", func(r *result) { r.neighbors.Max = 2 * time.Second }},
		{"recovered 3.0s after the end", func(r *result) { r.recovered = 3 * time.Second }},
		{"got no request within 1s", func(r *result) { r.returned = -1 }},
		{"was not served within 2s while x", func(r *result) { r.changed = -1 }},
		{"was not served within 2s afterwards", func(r *result) { r.changedNext = 3 * time.Second }},
		{"not given back", func(r *result) { r.after.goroutines = 100 }},
		{"not given back", func(r *result) { r.after.descriptors = 100 }},
		{"not given back", func(r *result) { r.after.upstream = 100 }},
		{"not given back", func(r *result) { r.after.resident = 100 << 20 }},
	} {
		r := good()
		tc.change(r)
		r.judge(true, 1)
		if got := strings.Join(r.complaints, "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("want %q, got %q", tc.want, got)
		}
	}
	r := good()
	r.evidence = "0 resets"
	if r.judge(false, 1); len(r.complaints) != 1 || !strings.Contains(r.complaints[0], "did not take place: 0 resets") {
		t.Errorf("a fault that was none: %q", r.complaints)
	}
}

// TestChecks: what faults ask besides.
func TestChecks(t *testing.T) {
	began := time.Now()
	stageOf := func(wrong int64, samples ...sample) *stage {
		p := &pod{}
		p.wrong.Store(wrong)
		s := &stage{pods: []*pod{p}, began: began, victims: &tally{}}
		for _, one := range samples {
			one.began = began.Add(one.began.Sub(time.Time{}))
			s.victims.add(one)
		}
		return s
	}
	after := func(d time.Duration) time.Time { return time.Time{}.Add(d) }
	failed := sample{began: after(time.Second), took: serverTimeout, outcome: "504"}
	early := sample{began: after(time.Second), took: time.Millisecond, outcome: "504"}
	late := sample{began: after(6 * time.Second), took: serverTimeout, outcome: "504"}
	for _, tc := range []struct {
		name  string
		check func(*stage) error
		stage *stage
		want  string
	}{
		{"as many as the pod failed", ownFault, stageOf(1, failed), ""},
		{"more than the pod failed", ownFault, stageOf(1, failed, failed), "2 requests failed"},
		{"in time", notEarly, stageOf(1, failed), ""},
		{"too early", notEarly, stageOf(1, early), "a 504 came after 1ms"},
		{"soon out", soonOut, stageOf(0, failed), ""},
		{"not soon out", soonOut, stageOf(0, late), "6.0s after the pod"},
		{"repeated", neverTwice, func() *stage { s := stageOf(1, failed); s.asked[1] = 2; return s }(), "2 requests came to pods"},
	} {
		err := tc.check(tc.stage)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestChoose(t *testing.T) {
	all, err := choose(options{})
	if err != nil || slices.ContainsFunc(all, func(f *fault) bool { return f.clock }) || all[len(all)-1].name != "log readers gone" {
		t.Errorf("without flags: %v", err)
	}
	hosts := map[string]bool{}
	with, err := choose(options{clock: true})
	for _, f := range with {
		hosts[f.host()] = true
		if f.pods == 0 || f.begin == nil || f.end == nil || f.present == nil {
			t.Errorf("%s is not complete", f.name)
		}
	}
	if err != nil || len(with) != len(all)+2 || len(hosts) != len(with) {
		t.Errorf("with clock: %d faults, %d hosts, %v", len(with), len(hosts), err)
	}
	if some, err := choose(options{only: "hangs; resets"}); err != nil || len(some) != 2 || some[0].name != "resets" || some[1].name != "hangs" {
		t.Errorf("two of them: %v", err)
	}
	if _, err := choose(options{only: "rain"}); err == nil || !strings.Contains(err.Error(), `"rain"; allowed: all, or some of resets; `) {
		t.Errorf("unknown: %v", err)
	}
}

// TestGuard: a clock that is right is left alone.
func TestGuard(t *testing.T) {
	if err := guard(strings.NewReader("")); err != nil {
		t.Error(err)
	}
}
