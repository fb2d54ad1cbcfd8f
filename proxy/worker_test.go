package proxy

import (
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/routing"
)

// TestWorkersAreChecked when they are made.
func TestWorkersAreChecked(t *testing.T) {
	whole := func() Config {
		r := &rig{}
		return Config{Store: routing.NewStore(), Clock: &virtual{}, Upstreams: (*fakeUpstreams)(r), Timeouts: DefaultTimeouts()}
	}
	for want, spoil := range map[string]func(*Config){
		"Store":       func(c *Config) { c.Store = nil },
		"Clock":       func(c *Config) { c.Clock = nil },
		"Upstreams":   func(c *Config) { c.Upstreams = nil },
		"ServerFin":   func(c *Config) { c.Timeouts.ServerFin = 0 },
		"is no token": func(c *Config) { c.LoopID = "not a token" },
	} {
		cfg := whole()
		spoil(&cfg)
		if _, err := NewWorker(cfg); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot make a proxy worker: ") {
			t.Errorf("%s: %v", want, err)
		}
	}
	w, err := NewWorker(whole())
	if err != nil || *w.Timeouts() != DefaultTimeouts() || w.cfg.LoopID != DefaultLoopID || w.cfg.MaxRewrite != DefaultMaxRewrite {
		t.Errorf("%v: %+v", err, w)
	}
}

// TestExchangesAreUsedAgain, and left to the collector when they are too many.
func TestExchangesAreUsedAgain(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.ask("GET /")
	first := r.ex
	r.answer(200, true)
	r.ask("GET /")
	if r.ex != first {
		t.Error("its memory is not used again")
	}
	r.answer(200, true)
	for range 3 {
		r.w.Trim()
	}
	if r.w.free.Len() != 0 {
		t.Errorf("%d are kept", r.w.free.Len())
	}
	first.Reached(bound.Hops)
	if r.bounds.Of(bound.Hops) != 1 {
		t.Error("the bound is not counted")
	}
}

// TestRequestsAllocateNothing: a request over the pipeline alone, which is logged, costs no memory.
func TestRequestsAllocateNothing(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.AccessLog = nothing{} })
	ends := &silent{}
	r.w.cfg.Upstreams = ends
	h, _ := request("GET /p", "x-in: 1")
	answer := &Head{Status: 200, Minor: 1, ContentLength: -1}
	client, fields, in := &Client{}, make([]Field, 0, 10), h.Fields[0]
	once := func() {
		h.Fields = append(fields, in)
		ex := r.w.Acquire(ends, client)
		ex.Request(h, true)
		ex.ResponseHead(answer, false)
		ex.ResponseData(in.Value)
		ex.ResponseEnd(nil)
	}
	once()
	if n := testing.AllocsPerRun(1000, once); n > 0 {
		t.Errorf("%v allocations per request", n)
	}
	r.wantNothingLeft()
}

// nothing is an AccessLog that keeps nothing.
type nothing struct{}

func (nothing) Log(*Record) {}

// TestWords: every fault and reason has one.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for f := range Fault(len(faultNames)) {
		if w := f.String(); w == "unknown" || seen[w] {
			t.Errorf("fault %d is called %q", f, w)
		} else {
			seen[w] = true
		}
	}
	if Fault(200).String() != "unknown" || Reason(200).String() != "unknown" {
		t.Error("what is none has a word")
	}
	if !strings.Contains(ErrNoTLS.Error(), "TLS") {
		t.Error(ErrNoTLS)
	}
}
