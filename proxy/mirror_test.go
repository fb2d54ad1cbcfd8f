package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/routing"
	"turnout/routing/header"
)

// mirroring is a rule whose requests go to a, and copies to m, and to n as well if there are two.
func mirroring(mirrors ...string) func(s *routing.RuleSpec) {
	return func(s *routing.RuleSpec) {
		s.Targets = targets("a")
		for _, key := range mirrors {
			s.Mirrors = append(s.Mirrors, routing.MirrorSpec{Key: key, Targets: targets(key)})
		}
	}
}

// copies are the outcomes of a worker's copies so far.
func (r *rig) copies() string {
	n := r.totals().Copies
	return fmt.Sprintf("%d answered, %d failed, %d dropped", n[CopyAnswered], n[CopyFailed], n[CopyDropped])
}

// noCopies fails the test unless nothing is left of copies.
func (r *rig) noCopies(want string) {
	r.t.Helper()
	if got := r.copies(); got != want || r.w.copying.Used() != 0 || r.w.mirrored.Used() != 0 {
		r.t.Errorf("%s, want %s; %d on their way, %d bytes", got, want, r.w.copying.Used(), r.w.mirrored.Used())
	}
	for p := range r.mirrorPools {
		if p.InFlight() != 0 {
			r.t.Error("a server of a mirror is still in use")
		}
	}
}

// TestCopies: a complete request is sent to mirrors as the rule has changed it, whole; what comes of that reaches nobody.
func TestCopies(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		mirroring("m", "n")(s)
		s.Policy.Forwarded = routing.ForwardedAppend
		s.Policy.RequestActions = compiled(t, header.Request, "x-rule", "1")
		s.Backends = []routing.BackendSpec{{Key: "a", Weight: 1, Targets: s.Targets, RequestActions: compiled(t, header.Request, "x-backend", "1")}}
	})
	r.ask("POST /p?q=1 10", "host: app.test", "expect: 100-continue", "x-mine: 1")
	r.ready()
	r.ex.RequestData([]byte("01234"))
	r.ex.RequestData([]byte("56789"))
	r.want("acquire a, down pause, up1 head POST /p?q=1, down resume, up1 body 01234, up1 body 56789")
	if got := fieldsOf(&r.sent, "x-backend", "x-rule"); got != "x-rule: 1, x-backend: 1" {
		t.Errorf("the endpoint got %q", got)
	}
	r.ex.RequestEnd(nil)
	r.want("up1 end, acquire m, acquire n")
	main := r.ex
	for i := range 2 {
		up := (*fakeUpstreams)(r).upstream()
		r.exs[1+i].UpstreamReady(up)
		r.want(fmt.Sprintf("up%d head POST /p?q=1, up%d body 0123456789, up%d end", up.n, up.n, up.n))
		if got := fieldsOf(&r.sent, "host", "expect", "x-mine", "x-rule", "x-backend", "cdn-loop", "x-forwarded-for"); got != "host: app.test, x-mine: 1, x-rule: 1, cdn-loop: turnout, x-forwarded-for: 192.0.2.7" || r.sent.ContentLength != 10 {
			t.Errorf("the mirror got %q and %d bytes", got, r.sent.ContentLength)
		}
	}
	r.exs[1].ResponseHead(&Head{Status: 500, Minor: 1}, false)
	r.exs[1].ResponseData([]byte("nobody reads this"))
	r.want("")
	r.answer(200, true)
	r.want("down head 200 end")
	r.ended(ReasonOK, 200)
	r.exs[1].ResponseEnd(nil)
	r.exs[2].UpstreamFault(FaultReset)
	r.want("")
	r.noCopies("1 answered, 1 failed, 0 dropped")
	if n := r.totals(); n.Requests != 1 || n.Reasons[ReasonOK] != 1 || n.Ports[0].Answers[5] != 0 || len(r.logged) != 0 || main == nil {
		t.Errorf("copies are counted or logged as requests: %+v", n)
	}
	if stats := r.store.Load().Route(r.specs[0].RouteKey).Stats(); stats.Sessions.Total() != 1 || stats.Fresh.Load() != 1 || stats.ResponseErrors.Load() != 0 {
		t.Error("copies are counted as requests of the route")
	}
}

// TestCopiesAlone: copies go their way whatever becomes of the request, which waits for none of them.
func TestCopiesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *routing.RuleSpec)
		do     func(r *rig)
		said   string
		want   string
	}{
		"the request has ended long ago": {nil, func(r *rig) {
			r.ready()
			r.answer(200, true)
			r.heard()
			r.exs[1].UpstreamReady((*fakeUpstreams)(r).upstream())
			r.exs[1].ResponseHead(&Head{Status: 200, Minor: 1}, true)
		}, "up2 head GET / end", "1 answered, 0 failed, 0 dropped"},
		"no server of the route": {func(s *routing.RuleSpec) { s.Targets = nil }, func(r *rig) {
			r.exs[0].UpstreamFault(FaultConnect)
		}, "", "0 answered, 1 failed, 0 dropped"},
		"no server of the mirror": {func(s *routing.RuleSpec) { s.Mirrors[0].Targets = nil }, func(r *rig) {
			r.ready()
			r.answer(200, true)
		}, "up1 head GET / end, down head 200 end", "0 answered, 1 failed, 0 dropped"},
		"the mirror never answers": {nil, func(r *rig) {
			r.ready()
			r.answer(200, true)
			r.heard()
			r.exs[1].UpstreamReady((*fakeUpstreams)(r).upstream())
			r.heard()
			r.clock.advance(routing.MirrorTimeout)
		}, "up2 abort timeout", "0 answered, 1 failed, 0 dropped"},
		"the mirror never connects": {func(s *routing.RuleSpec) { s.Policy.RequestTimeout = time.Second }, func(r *rig) {
			r.ready()
			r.answer(200, true)
			r.heard()
			r.clock.advance(time.Second)
		}, "cancel", "0 answered, 1 failed, 0 dropped"},
		"a panic over the copy": {nil, func(r *rig) {
			r.ready()
			r.answer(200, true)
			r.heard()
			r.panicAt = "up2 head"
			if !r.recovering(func() { r.exs[1].UpstreamReady((*fakeUpstreams)(r).upstream()) }) {
				r.t.Error("nothing panicked")
			}
		}, "up2 head GET / end, up2 abort canceled", "0 answered, 1 failed, 0 dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuleRig(t, func(s *routing.RuleSpec) {
				mirroring("m")(s)
				if c.change != nil {
					c.change(s)
				}
			})
			r.ask("GET /")
			r.heard()
			c.do(r)
			r.want(c.said)
			r.noCopies(c.want)
		})
	}
}

// TestRequestsThatAreNotCopied: those that become tunnels, those that are never complete, and rehearsed ones.
func TestRequestsThatAreNotCopied(t *testing.T) {
	r := newRuleRig(t, mirroring("m"))
	r.upgrade()
	r.over()
	r.noCopies("0 answered, 0 failed, 0 dropped")
	r.ask("POST / 10")
	r.ready()
	r.ex.RequestData([]byte("0"))
	r.ex.DownstreamGone(FaultReset)
	r.noCopies("0 answered, 0 failed, 1 dropped")
	r.ask("POST / 10")
	r.ready()
	r.answer(403, true)
	r.noCopies("0 answered, 0 failed, 2 dropped")
	r.ask("POST / 10")
	r.ready()
	r.panicAt = "up"
	r.recovering(func() { r.ex.RequestData([]byte("0")) })
	r.noCopies("0 answered, 0 failed, 3 dropped")
	r.w.cfg.Rehearse = true
	r.ask("GET /")
	r.ready()
	r.noCopies("0 answered, 0 failed, 3 dropped")
	if said := r.heard(); strings.Contains(said, "acquire m") {
		t.Error(said)
	}
}

// TestCopiesAreBounded: by the body of one, by the bytes of all, and by their number; requests go on.
func TestCopiesAreBounded(t *testing.T) {
	r := newRuleRig(t, mirroring("m"))
	piece := make([]byte, 16<<10)
	upload := func(n int) *Exchange {
		r.ask("POST / -")
		r.ready()
		for range n {
			r.ex.RequestData(piece)
		}
		return r.ex
	}
	ex := upload(mirroredBody/len(piece) + 1)
	ex.RequestEnd(nil)
	if said := r.heard(); strings.Contains(said, "acquire m") || !strings.Contains(said, "up1 end") {
		t.Error(said)
	}
	r.answer(200, true)
	r.noCopies("0 answered, 0 failed, 1 dropped")

	var all []*Exchange
	for range maxMirrored/mirroredBody + 8 {
		all = append(all, upload(mirroredBody/len(piece)))
		if r.w.mirrored.Used() > maxMirrored/2 {
			t.Fatalf("%d bytes of copies", r.w.mirrored.Used())
		}
	}
	if n := r.totals().Copies[CopyDropped]; n < 8 || r.bounds.Of(bound.Mirrors) != n {
		t.Errorf("%d dropped, %d bounds", n, r.bounds.Of(bound.Mirrors))
	}
	for _, ex := range all {
		ex.DownstreamGone(FaultReset)
	}
	before := r.totals().Copies[CopyDropped]
	if r.w.mirrored.Used() != 0 {
		t.Errorf("%d bytes are left", r.w.mirrored.Used())
	}
	for range maxCopies/2 + 1 {
		r.ask("GET /")
		r.ex.DownstreamGone(FaultReset)
	}
	if n := r.totals().Copies[CopyDropped] - before; n != 1 || r.w.copying.Used() != maxCopies/2 {
		t.Errorf("%d on their way, %d dropped", r.w.copying.Used(), n)
	}
	r.clock.advance(routing.MirrorTimeout)
	if r.w.copying.Used() != 0 || r.w.mirrored.Used() != 0 {
		t.Errorf("%d on their way, %d bytes", r.w.copying.Used(), r.w.mirrored.Used())
	}
}

// TestSharesOfCopies: of so many requests so many are copied.
func TestSharesOfCopies(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		mirroring("m", "n")(s)
		s.Mirrors[0].Numerator, s.Mirrors[0].Denominator = 20, 100
		s.Mirrors[1].Numerator, s.Mirrors[1].Denominator = 1, 2
	})
	r.pooled = true
	for range 1000 {
		r.ask("GET /")
		r.answer(200, true)
		for _, copied := range r.exs {
			if copied.copied != nil {
				copied.ResponseHead(&Head{Status: 200, Minor: 1}, true)
			}
		}
		r.exs = r.exs[:0]
	}
	said := r.heard()
	if m, n := strings.Count(said, "acquire m"), strings.Count(said, "acquire n"); m < 150 || m > 250 || n < 430 || n > 570 {
		t.Errorf("%d and %d of 1000 requests are copied", m, n)
	}
}
