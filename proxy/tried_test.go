package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

var algorithms = []balancer.Algorithm{balancer.Random, balancer.RoundRobin, balancer.LeastConn, balancer.Source, balancer.SourceConsistent}

// TestRetriesPreferUntriedPods draws algorithms, pods, weights, limits, sticky cookies, backoffs
// and faults at random. Each attempt that a fault causes goes to a pod that has not failed the
// request while there is one, and never to the pod that failed last while there is another.
func TestRetriesPreferUntriedPods(t *testing.T) {
	seeds := 2000
	if testing.Short() {
		seeds = 400
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 56))
		pods := 1 + random.IntN(6)
		var limit int
		r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
			s.Balance, s.CookieName = algorithms[random.IntN(len(algorithms))], "app"
			s.Targets = targets(strings.Split("abcdef"[:pods], "")...)
			for i := range s.Targets {
				s.Targets[i].Weight = 1 + random.IntN(3)
			}
			limit = random.IntN(2)
			s.Limit = limit
			s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 1 + random.IntN(10)}
			s.Policy.Retry.Backoff = time.Duration(random.IntN(2)) * 50 * time.Millisecond
			s.Policy.AttemptTimeout = time.Second
		})
		cookie := r.pool().Servers()[random.IntN(pods)].Cookie()
		h, end := request("GET /", "cookie: app="+cookie)
		r.begin(Client{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(random.Uint32())}), 1)})
		r.ex.Request(h, end)
		var failed []byte
		for r.ex.state == stateConnect {
			said := r.said[len(r.said)-1]
			var pod byte
			if _, err := fmt.Sscanf(said, "acquire %c", &pod); err != nil {
				t.Fatalf("seed %d: %s", seed, said)
			}
			if bad := wrongChoice(failed, pod, pods); bad != "" {
				t.Fatalf("seed %d, %v, %d pods, limit %d: %c was asked after %s: %s", seed, r.specs[0].Balance, pods, limit, pod, failed, bad)
			}
			if fresh := strings.HasSuffix(said, "fresh"); !fresh {
				failed = append(failed, pod)
			}
			switch random.IntN(6) {
			case 0:
				r.ex.UpstreamFault(FaultConnect)
			case 1:
				r.ready()
				r.ex.UpstreamFault(FaultReset)
			case 2:
				r.ready()
				r.clock.advance(1100 * time.Millisecond)
			case 3:
				r.ready()
				r.ex.UpstreamFault(FaultUnanswered)
			default:
				r.ready()
				r.answer(503, true)
			}
			if r.ex.state == stateBackoff {
				r.clock.advance(50 * time.Millisecond)
			}
			r.clock.deliver()
		}
		if len(r.logged) != 1 {
			t.Fatalf("seed %d: state %d, %d records", seed, r.ex.state, len(r.logged))
		}
	}
}

// wrongChoice returns the reason why a pod must not be chosen after the failed ones, given in
// order. "" = it may be chosen.
func wrongChoice(failed []byte, pod byte, pods int) string {
	if len(failed) == 0 || pods == 1 {
		return ""
	}
	if failed[len(failed)-1] == pod {
		return "it failed last"
	}
	distinct := map[byte]bool{}
	for _, f := range failed {
		distinct[f] = true
	}
	if distinct[pod] && len(distinct) < pods {
		return "another one was not tried"
	}
	return ""
}

// TestTriedServersAllocs checks that recording failed servers allocates nothing.
func TestTriedServersAllocs(t *testing.T) {
	p := balancer.NewRegistry().Pool("p")
	p.Update(balancer.PoolConfig{}, targets(strings.Split("abcdefghijkl", "")...))
	all := p.Servers()
	if n := testing.AllocsPerRun(100, func() {
		var tried triedServers
		for _, s := range all {
			tried.add(s)
		}
		if tried.last() != all[len(all)-1] || len(tried.list()) != balancer.MaxExclude {
			t.Error("the latest are not kept")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
