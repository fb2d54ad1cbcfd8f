// Package adversary runs a router with a memory limit of 256 MiB, attacks it over real sockets in one way after the other, and
// looks at what others notice:
//
//	go run ./bench/run adversary
//	go run ./bench/run adversary -only leavers
//
// Bystanders ask for pages over HTTP/1.1 and HTTP/2 on other routes, and where an attack is about what they share with it, on the same
// one. None of their requests may fail, 99 of 100 must be answered within three times the quiet time, in floods half of them too, on
// connections that stay and on new ones, and the resident memory of the router may be at most a fifth above the limit. Where an attack
// has a promise of its own (descriptors, probes, requests to a pod that vanished), that is looked at as well.
//
// Pods and bystanders have a real-time priority where that is permitted (root has it), and the router a high ordinary one, so that a
// busy machine changes the figures little; the attackers are a process of their own that gets what they leave. All of it is on
// loopback, and ends by itself after less than three minutes.
package adversary

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

const (
	memoryLimit = 256 << 20           // of the router, in bytes
	mostMemory  = memoryLimit * 6 / 5 // that it may take of the system
	slower      = 3                   // times as long as when it is quiet a bystander may wait, for 99 of 100 requests
	againUntil  = 2 * time.Minute     // after the beginning an attack may be made again, so that all of it ends within three
)

// Scenario is the attacks.
func Scenario() site.Scenario {
	return site.Scenario{Name: "adversary", About: "attacks over real sockets, one after the other, and what bystanders notice of them", Flags: func(f *flag.FlagSet) func(*site.T) {
		var r rig
		f.IntVar(&r.seconds, "seconds", 4, "how long an attack goes on")
		f.DurationVar(&r.floor, "floor", 5*time.Millisecond, "p99 of bystanders that is always fast enough")
		f.BoolVar(&r.ahead, "ahead", true, "router and bystanders go before everything else on the machine, where that is permitted")
		f.BoolVar(&r.verbose, "v", false, "print what the attackers say")
		only := f.String("only", "all", "names of attacks, separated by commas; all others are left out")
		return func(t *site.T) {
			r.T = t
			some, err := site.Choose(*only, ",", attacks, func(a attack) string { return a.name })
			site.Refuse(err)
			r.run(some)
		}
	}}
}

// Roles are what it is in processes of its own.
func Roles() []site.Role {
	return []site.Role{
		{Name: attackersRole, Run: beAttackers},
		{Name: floodedPod, Run: func(ctx context.Context, _ []string) error { return site.ServeInherited(ctx, pages()) }},
	}
}

// outcome is what bystanders saw, and what the router took meanwhile.
type outcome struct {
	requests, failed int
	first            string          // error
	took             []time.Duration // on connections that stay
	connected        []time.Duration // connecting included
	all, fresh       site.Latency    // of these
	resident         int64           // most of it
	slow             bool            // p99 was too long
	wrong            []string
}

func (r *rig) run(some []attack) {
	r.start()
	quiet := r.watch(time.Duration(r.seconds)*time.Second, "own")
	r.Printf("%-22s %8s %6s %9s %9s %9s %9s\n", "", "requests", "failed", "p50", "p99", "new p50", "resident")
	row := func(name string, oc *outcome) {
		r.Printf("%-22s %8d %6d %9v %9v %9v %6.0f MiB\n", name, oc.requests, oc.failed, oc.all.P50, oc.all.P99, oc.fresh.P50, site.MiB(oc.resident))
	}
	row("quiet", quiet)
	if quiet.failed > 0 {
		site.Stopf("cannot measure: %d requests failed without an attack, first: %s", quiet.failed, quiet.first)
	}
	began := time.Now()
	for i := range some {
		a := &some[i]
		oc := r.withstand(a, quiet)
		for again := 0; oc.slow && len(oc.wrong) == 1 && again < 2 && time.Since(began) < againUntil; again++ {
			// Others use the machine as well, and may by now do so more than they did.
			now := r.watch(time.Duration(r.seconds)*time.Second, "own")
			r.Printf("%-22s once more: p99 was %v, and is %v without the attack\n", a.name, oc.all.P99, now.all.P99)
			oc = r.withstand(a, now)
		}
		row(a.name, oc)
		for _, w := range oc.wrong {
			r.Failf("%s: %s", a.name, w)
		}
	}
}

// withstand makes one attack.
func (r *rig) withstand(a *attack, quiet *outcome) *outcome {
	before := len(r.router.Descriptors())
	attacked, end := context.WithCancel(r.Context)
	defer end()
	cmd := site.LowPriority(site.Self(attacked, attackersRole, a.name, r.router.HTTP, r.router.HTTPS, r.router.Admin, r.gateway))
	attackers := site.StartProcess("the attackers", cmd, site.AnyCore, nil)
	defer attackers.Kill()
	length := time.Duration(max(r.seconds, a.seconds)) * time.Second
	var also []string
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		if a.meanwhile != nil {
			also = a.meanwhile(attacked, r, length)
		}
	}()
	oc := r.watch(length, slices.Concat([]string{"own"}, a.share)...)
	<-checked
	end()
	attackers.Kill()
	if r.verbose {
		fmt.Fprintln(os.Stderr, attackers.Tail())
	}
	if a.after != nil {
		also = append(also, a.after(r, before)...)
	}
	oc.judge(quiet, r.floor)
	oc.wrong = append(oc.wrong, also...)
	if a.flood {
		oc.judgeFlood(quiet)
	}
	return oc
}

func (oc *outcome) wrongf(format string, args ...any) {
	oc.wrong = append(oc.wrong, fmt.Sprintf(format, args...))
}

// judge says what bystanders must not have noticed.
func (oc *outcome) judge(quiet *outcome, floor time.Duration) {
	if oc.failed > 0 {
		oc.wrongf("%d of %d requests of others failed, first: %s", oc.failed, oc.requests, oc.first)
	}
	if most := max(slower*quiet.all.P99, floor); oc.all.P99 > most {
		oc.slow = true
		oc.wrongf("1 of 100 requests of others took longer than %v", most)
	}
	if oc.resident > mostMemory {
		oc.wrongf("the router took %d MiB, with a limit of %d", oc.resident>>20, int64(memoryLimit)>>20)
	}
}

// judgeFlood says what half of the bystanders' requests must not have noticed of a flood.
func (oc *outcome) judgeFlood(quiet *outcome) {
	if most := slower * quiet.all.P50; oc.all.P50 > most {
		oc.wrongf("1 of 2 requests of others took longer than %v", most)
	}
	if most := slower * quiet.fresh.P50; oc.fresh.P50 > most {
		oc.wrongf("1 of 2 requests on new connections took longer than %v", most)
	}
}

// bystander is a client that asks for the page of a host.
type bystander struct {
	host, url string
	http.Transport
}

// newBystander connects to addr, with HTTP/2 by prior knowledge or HTTP/1.1, and for each request anew if fresh is set.
func newBystander(addr, host string, http2, fresh bool) *bystander {
	b := &bystander{host: host, url: "http://" + addr + "/"}
	b.Protocols, b.MaxIdleConnsPerHost, b.DisableKeepAlives = new(http.Protocols), 4, fresh
	b.Protocols.SetHTTP1(!http2)
	b.Protocols.SetUnencryptedHTTP2(http2)
	return b
}

// ask asks once, for 5 s at most.
func (b *bystander) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := testhttp.Ask(ctx, &b.Transport, b.url, b.host); err != nil {
		return fmt.Errorf("%s: %w", b.host, err)
	}
	return nil
}

// askSteadily asks at a fixed rate until ctx is done, whether the request before was answered or not, and returns when all are.
func (b *bystander) askSteadily(ctx context.Context, every time.Duration, each func(began time.Time, err error)) {
	var asked sync.WaitGroup
	defer b.CloseIdleConnections()
	defer asked.Wait()
	for site.Pause(ctx, every) == nil {
		asked.Go(func() {
			began := time.Now()
			each(began, b.ask(context.WithoutCancel(ctx)))
		})
	}
}

// watch has bystanders ask for so long on the hosts of these names, over both protocols and on new connections, and looks at the
// router's memory meanwhile.
func (r *rig) watch(length time.Duration, names ...string) *outcome {
	oc := &outcome{}
	var mu sync.Mutex
	asking, end := context.WithTimeout(r.Context, length)
	defer end()
	var running sync.WaitGroup
	start := func(host string, http2, fresh bool) {
		running.Go(func() {
			newBystander(r.router.HTTP, host, http2, fresh).askSteadily(asking, 20*time.Millisecond, func(began time.Time, err error) {
				mu.Lock()
				defer mu.Unlock()
				oc.requests++
				into := &oc.took
				if fresh {
					into = &oc.connected
				}
				*into = append(*into, time.Since(began))
				if err != nil {
					if oc.failed++; oc.first == "" {
						oc.first = err.Error()
					}
				}
			})
		})
	}
	for _, name := range names {
		for _, pod := range []string{"1", "2"} {
			host := name + pod + ".test"
			start(host, false, false)
			start(host, true, false)
			start(host, false, true)
		}
	}
	for site.Pause(asking, 100*time.Millisecond) == nil {
		site.Check(r.router.Died())
		oc.resident = max(oc.resident, r.router.Resident())
	}
	running.Wait()
	site.Check(r.Err())
	oc.all, oc.fresh = site.LatencyOf(oc.took), site.LatencyOf(oc.connected)
	for _, d := range []*time.Duration{&oc.all.P50, &oc.all.P99, &oc.fresh.P50} {
		*d = d.Round(10 * time.Microsecond)
	}
	return oc
}
