package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/routing"
)

// TestReturnedRequestsDoNotMultiply checks that copies and retries are made at the first pass
// through the router only. Mirrored copies and requests that return through a route carry the hop
// of this router.
func TestReturnedRequestsDoNotMultiply(t *testing.T) {
	for _, returned := range []bool{false, true} {
		r := newRuleRig(t, func(s *routing.RuleSpec) {
			mirroring("m", "n")(s)
			s.Targets = targets("a", "b", "c")
			s.Policy.Retry = &routing.RetrySpec{Codes: []int{503, 508}, Attempts: 10}
		})
		var fields []string
		if returned {
			fields = []string{"cdn-loop: other, turnout;v=1"}
		}
		r.ask("GET /", fields...)
		r.ex.UpstreamFault(FaultConnect) // nothing was sent: another pod is tried
		main := r.exs[len(r.exs)-1]
		main.UpstreamReady((*fakeUpstreams)(r).upstream())
		main.ResponseHead(&Head{Status: 503, Minor: 1}, true)
		said := r.heard()
		copies, attempts := strings.Count(said, "acquire m")+strings.Count(said, "acquire n"), strings.Count(said, "acquire ")
		attempts -= copies
		if returned && (copies != 0 || attempts != 2 || !strings.Contains(said, "down head 503")) {
			t.Errorf("a request that came back: %d copies, %d attempts: %s", copies, attempts, said)
		}
		if returned != (r.bounds.Of(bound.Mirrors) == 1) {
			t.Errorf("returned %v: the bound was counted %d times", returned, r.bounds.Of(bound.Mirrors))
		}
		if !returned && (copies != 2 || attempts != 3) {
			t.Errorf("%d copies, %d attempts: %s", copies, attempts, said)
		}
	}
}

// TestCopyEndsAtTheHeadOfItsResponse checks that a long response to a mirrored copy is not read,
// and that a short one leaves its connection usable.
func TestCopyEndsAtTheHeadOfItsResponse(t *testing.T) {
	piece := make([]byte, 8<<10)
	for name, c := range map[string]struct {
		length int64
		then   func(r *rig, copied *Exchange)
		said   string
	}{
		"long": {copyRest + 1, func(*rig, *Exchange) {}, "up2 abort canceled"},
		"no length, long": {-1, func(_ *rig, copied *Exchange) {
			for range copyRest/len(piece) + 1 {
				copied.ResponseData(piece)
			}
		}, "up2 abort canceled"},
		"no length, slow": {-1, func(r *rig, copied *Exchange) {
			copied.ResponseData(piece)
			r.clock.advance(copyGrace)
		}, "up2 abort canceled"},
		"short": {int64(len(piece)), func(_ *rig, copied *Exchange) {
			copied.ResponseData(piece)
			copied.ResponseEnd(nil)
		}, ""},
		"breaks off": {-1, func(_ *rig, copied *Exchange) { copied.UpstreamFault(FaultReset) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuleRig(t, mirroring("m"))
			r.ask("GET /")
			r.ready()
			r.answer(200, true)
			copied := r.exs[1]
			copied.UpstreamReady((*fakeUpstreams)(r).upstream())
			r.heard()
			copied.ResponseHead(&Head{Status: 200, Minor: 1, ContentLength: c.length}, false)
			c.then(r, copied)
			r.want(c.said)
			r.noCopies("1 answered, 0 failed, 0 dropped")
		})
	}
}

// TestNamespacesHaveSharesOfEachPool checks that a namespace that takes all it can of a pool leaves
// some to another namespace. Its own requests continue without the pool.
func TestNamespacesHaveSharesOfEachPool(t *testing.T) {
	gzipped := func(r *rig) bool {
		r.ready()
		r.answer(200, false, "content-type: text/html")
		r.ex.ResponseData([]byte("<html>"))
		return strings.Contains(fieldsOf(&r.head, "content-encoding"), "gzip")
	}
	for name, c := range map[string]struct {
		most int
		some func(r *rig) bool // takes a place, and reports whether it got one
		rule func(s *routing.RuleSpec)
	}{
		"compressors": {maxCompressors, gzipped, nil},
		"copies": {maxCopies, func(r *rig) bool {
			return strings.Contains(r.heard(), "acquire m")
		}, func(s *routing.RuleSpec) { s.Mirrors = []routing.MirrorSpec{{Key: "m", Targets: targets("m")}} }},
		"queue": {maxWaiting, func(r *rig) bool {
			return r.ex.state == stateQueue
		}, func(s *routing.RuleSpec) { s.Pool.Limit = 1 }},
		"backoff": {maxWaiting, func(r *rig) bool {
			r.ready()
			r.answer(503, true)
			return r.ex.state == stateBackoff
		}, func(s *routing.RuleSpec) {
			s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 1, Backoff: time.Second}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config, _ *routing.RouteSpec) {
				cfg.Compression = NewCompression("text/html")
				cfg.AccessLog = nil
			})
			other := r.specs[0]
			other.Namespace, other.Name, other.Host = "other", "other", "other.test"
			var rules []routing.RuleSpec
			for _, s := range []routing.RouteSpec{r.specs[0], other} {
				rule := s.Rule()
				if c.rule != nil {
					c.rule(&rule)
				}
				rules = append(rules, rule)
			}
			table, rejected := routing.CompileRules(routing.Options{Registry: r.pools}, r.store.Load(), rules)
			if len(rejected) > 0 {
				t.Fatal(rejected)
			}
			r.store.Publish(table)
			begin := func(host string) bool {
				r.begin(Client{})
				h, end := request("GET /", "host: "+host, "accept-encoding: gzip")
				h.Authority = []byte(host)
				r.ex.Request(h, end)
				ok := c.some(r)
				r.heard()
				if name == "backoff" { // without the budget of retries
					r.clock.now += int64(100 * time.Millisecond)
				}
				return ok
			}
			fill := func(host string) (n int) {
				for misses := 0; misses < 3; {
					if begin(host) {
						n++
					} else {
						misses++
					}
				}
				return n
			}
			first, second := fill("app.test"), fill("other.test")
			if first < c.most/3 || first > c.most/2 || second < c.most/8 {
				t.Errorf("of %d the first namespace has %d, the second %d", c.most, first, second)
			}
			if fmt.Sprint(r.totals().Reasons[ReasonInternal]) != "0" {
				t.Error("something failed")
			}
		})
	}
}
