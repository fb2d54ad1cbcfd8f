package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/routing"
)

// TestKeptBodyBelongsToItsExchange fills the memory for kept bodies while a request waits for its
// second attempt. The new bodies are not kept; the waiting request is sent whole.
func TestKeptBodyBelongsToItsExchange(t *testing.T) {
	for _, wait := range []string{"connect", "backoff"} {
		r := newRig(t, func(c *Config, s *routing.RouteSpec) {
			c.KeptBodies = 8 << 10
			s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 1}
			if wait == "backoff" {
				s.Policy.Retry.Backoff = time.Second
			}
		})
		r.ask("PUT / 10")
		r.ready()
		r.ex.RequestData([]byte("0123456789"))
		r.ex.RequestEnd(nil)
		r.answer(503, true)
		victim := r.ex
		for range 20 {
			r.ask("PUT / 2000")
			r.ready()
			r.ex.RequestData([]byte(strings.Repeat("x", 2000)))
			r.ex.RequestEnd(nil)
		}
		if got := r.w.Kept(); got > 8<<10 {
			t.Errorf("%s: %d bytes are kept", wait, got)
		}
		r.clock.advance(time.Second)
		r.heard()
		r.ex = victim
		r.ready()
		n := len(r.ups)
		want := "upN head PUT /, upN body 0123456789, upN end"
		if got := strings.ReplaceAll(r.heard(), fmt.Sprintf("up%d", n), "upN"); got != want {
			t.Errorf("%s: the second of %d attempts: %q, want %q", wait, n, got, want)
		}
	}
}

// TestGrowthBeyondTheShareEndsTheKeeping checks that a kept body that cannot grow is released while
// its attempt runs. The request is then not retried.
func TestGrowthBeyondTheShareEndsTheKeeping(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.KeptBodies = 5 << 10 })
	r.ask("PUT / -")
	r.ready()
	r.ex.RequestData(make([]byte, 2000))
	if r.w.Kept() != 2<<10 {
		t.Errorf("%d bytes are kept", r.w.Kept())
	}
	r.ex.RequestData(make([]byte, 2000))
	if r.w.Kept() != 0 || r.ex.repeatable() {
		t.Errorf("%d bytes are kept, repeatable %v", r.w.Kept(), r.ex.repeatable())
	}
	r.ex.UpstreamFault(FaultUnanswered)
	r.ended(ReasonUpstreamReset, 502)
}

// TestIncompleteRequestIsNotSent calls send with incomplete requests: bytes or trailers are lost
// because they came while no endpoint could take them. Codecs prevent that. If a codec fails to,
// the request is answered 500, and the endpoint gets nothing.
func TestIncompleteRequestIsNotSent(t *testing.T) {
	for name, lose := range map[string]func(r *rig){
		"data":     func(r *rig) { r.ex.RequestData([]byte("lost")) },
		"moved":    func(r *rig) { r.ex.RequestMoved(4) },
		"trailers": func(r *rig) { r.ex.RequestEnd(fieldLines("x-sum: 7")) },
	} {
		breaches := 0
		r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.Breach = func(string) { breaches++ } })
		r.ask("POST / -")
		lose(r)
		r.heard()
		r.ready()
		if got := r.heard(); !strings.HasPrefix(got, "up1 abort canceled, down head 500") || breaches != 1 {
			t.Errorf("%s: %d breaches, said %q", name, breaches, got)
		}
		r.ended(ReasonInternal, 500)
	}
}
