// Package adversary runs a router with a memory limit of 256 MiB, attacks it over real sockets in one way after the other, and
// looks at what others notice:
//
//	go run ./bench/run adversary
//	go run ./bench/run adversary -only leavers
//
// Bystanders ask for pages over HTTP/1.1 and HTTP/2 on other routes, and where an attack is about what they share with it, on the same
// one. None of their requests may fail, 99 of 100 must be answered within three times the quiet time, in floods half of them too, on
// connections that stay and on new ones, and the resident memory of the router may be at most a fifth above the limit. Where an attack has a promise of its own (descriptors, probes, requests to
// a pod that vanished), that is looked at as well.
//
// Pods and bystanders have a real-time priority where that is permitted (root has it), and the router a high ordinary one, so that a
// busy machine changes the figures little; the attackers are a process of their own that gets what they leave. All of it is on loopback, and ends by itself after
// less than three minutes.
package adversary

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"turnout/bench/site"
)

type options struct {
	turnout string
	seconds int           // of an attack
	floor   time.Duration // p99 may always be that
	only    string        // name of one attack
	ahead   bool          // real-time priority for router and bystanders
	verbose bool
}

// The memory limit of the router, and what it may take of the system, in bytes.
const (
	memoryLimit = 256 << 20
	mostMemory  = memoryLimit * 6 / 5
)

// slower is how much longer than when it is quiet a bystander may wait, for 99 of 100 requests.
const slower = 3

// Scenario is the attacks.
func Scenario() site.Scenario {
	return site.Scenario{Name: "adversary", About: "attacks over real sockets, one after the other, and what bystanders notice of them", Flags: func(f *flag.FlagSet) func(*site.T) {
		var o options
		f.IntVar(&o.seconds, "seconds", 4, "how long an attack goes on")
		f.DurationVar(&o.floor, "floor", 5*time.Millisecond, "p99 of bystanders that is always fast enough")
		f.StringVar(&o.only, "only", "", "make this attack only")
		f.BoolVar(&o.ahead, "ahead", true, "router and bystanders go before everything else on the machine, where that is permitted")
		f.BoolVar(&o.verbose, "v", false, "print what the attackers say")
		return func(t *site.T) {
			o.turnout = t.Program
			if !site.Must(run(t.Context, &o, t.Out)) {
				t.Failf("not all attacks were withstood")
			}
		}
	}}
}

// Roles are what it is in processes of its own.
func Roles() []site.Role {
	return []site.Role{{Name: attackersRole, Run: beAttackers}, {Name: floodedPod, Run: beFloodedPod}}
}

// patience is how long after the beginning an attack may still be made again, so that all of it ends within three minutes.
const patience = 2 * time.Minute

// outcome is what an attack did to others.
type outcome struct {
	figures

	resident int64 // most of it
	slow     bool  // p99 was too long
	wrong    []string
}

// run makes the attacks and reports whether all were withstood.
func run(ctx context.Context, o *options, out io.Writer) (bool, error) {
	r, err := startRig(ctx, o)
	if err != nil {
		return false, err
	}
	defer r.close()
	quiet, err := r.watch(ctx, time.Duration(o.seconds)*time.Second, "own")
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "%-22s %8s %6s %9s %9s %9s %9s\n", "", "requests", "failed", "p50", "p99", "new p50", "resident")
	row := func(name string, oc *outcome) {
		fmt.Fprintf(out, "%-22s %8d %6d %9v %9v %9v %6.0f MiB\n", name, oc.requests, oc.failed,
			oc.at(50), oc.at(99), percentile(oc.connected, 50), float64(oc.resident)/(1<<20))
	}
	row("quiet", quiet)
	if quiet.failed > 0 {
		return false, fmt.Errorf("cannot measure: %d requests failed without an attack, first: %s", quiet.failed, quiet.first)
	}
	passed, began := true, time.Now()
	for i := range attacks {
		a := &attacks[i]
		if o.only != "" && a.name != o.only {
			continue
		}
		oc, err := r.withstand(ctx, a, &quiet.figures)
		for again := 0; err == nil && oc.slow && len(oc.wrong) == 1 && again < 2 && time.Since(began) < patience; again++ {
			// Others use the machine as well, and may by now do so more than they did.
			now, qerr := r.watch(ctx, time.Duration(o.seconds)*time.Second, "own")
			if qerr != nil {
				return false, qerr
			}
			fmt.Fprintf(out, "%-22s once more: p99 was %v, and is %v without the attack\n", a.name, oc.at(99), now.at(99))
			oc, err = r.withstand(ctx, a, &now.figures)
		}
		if err != nil {
			return false, err
		}
		row(a.name, oc)
		for _, w := range oc.wrong {
			passed = false
			fmt.Fprintf(out, "  %s\n", w)
		}
	}
	return passed, nil
}

// withstand makes one attack.
func (r *rig) withstand(ctx context.Context, a *attack, quiet *figures) (*outcome, error) {
	before, err := r.router.Descriptors()
	if err != nil {
		return nil, err
	}
	attacked, end := context.WithCancel(ctx)
	defer end()
	attackers, err := r.startAttackers(attacked, a)
	if err != nil {
		return nil, err
	}
	length := time.Duration(max(r.o.seconds, a.seconds)) * time.Second
	var also []string
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		if a.meanwhile != nil {
			also = a.meanwhile(attacked, r, length)
		}
	}()
	oc, err := r.watch(ctx, length, slices.Concat([]string{"own"}, a.share)...)
	<-checked
	end()
	attackers.Kill()
	if r.o.verbose {
		fmt.Fprintln(os.Stderr, attackers.Tail())
	}
	if err != nil {
		return nil, err
	}
	if a.after != nil {
		also = append(also, a.after(ctx, r, before)...)
	}
	oc.wrong = append(oc.judge(quiet, r.o.floor), also...)
	if a.flood {
		oc.wrong = append(oc.wrong, oc.judgeFlood(quiet)...)
	}
	return oc, nil
}

// judgeFlood says what half of the bystanders' requests must not have noticed of a flood.
func (oc *outcome) judgeFlood(quiet *figures) (wrong []string) {
	if most := slower * quiet.at(50); oc.at(50) > most {
		wrong = append(wrong, fmt.Sprintf("1 of 2 requests of others took longer than %v", most))
	}
	if most := slower * percentile(quiet.connected, 50); percentile(oc.connected, 50) > most {
		wrong = append(wrong, fmt.Sprintf("1 of 2 requests on new connections took longer than %v", most))
	}
	return wrong
}

// judge says what bystanders must not have noticed.
func (oc *outcome) judge(quiet *figures, floor time.Duration) (wrong []string) {
	if oc.failed > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d requests of others failed, first: %s", oc.failed, oc.requests, oc.first))
	}
	if most := max(slower*quiet.at(99), floor); oc.at(99) > most {
		oc.slow = true
		wrong = append(wrong, fmt.Sprintf("1 of 100 requests of others took longer than %v", most))
	}
	if oc.resident > mostMemory {
		wrong = append(wrong, fmt.Sprintf("the router took %d MiB, with a limit of %d", oc.resident>>20, int64(memoryLimit)>>20))
	}
	return wrong
}
