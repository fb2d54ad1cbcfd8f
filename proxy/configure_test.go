package proxy

import (
	"testing"
	"time"

	"turnout/routing"
)

// TestConfigure: an exchange goes on by what it began with, the next one goes by what there is then; what cannot be used changes nothing.
func TestConfigure(t *testing.T) {
	r := newRig(t, func(*Config, *routing.RouteSpec) {})
	before := r.w.Acquire(nil, &Client{})
	next := *r.w.cfg
	next.MaxRewrite, next.Captures, next.Timeouts.KeepAlive = 0, &Captures{Request: []Capture{{Name: "a", Max: 1}}, Cookie: Capture{Name: "b", Max: 1}}, time.Minute
	next.Seed, next.LoopID, next.Store = 99, "other", nil
	limits := r.w.Timeouts()
	if err := r.w.Configure(next); err != nil {
		t.Fatal(err)
	}
	if limits.KeepAlive != time.Minute || r.w.cfg.Store == nil || r.w.cfg.LoopID == "other" || r.w.cfg.MaxRewrite != DefaultMaxRewrite {
		t.Errorf("the worker goes by %+v, its limits are %+v", r.w.cfg, limits)
	}
	if before.cfg == r.w.cfg || before.cfg.Captures != nil {
		t.Error("an exchange goes by what came after it began")
	}
	r.w.release(before)
	if after := r.w.Acquire(nil, &Client{}); after != before || after.cfg != r.w.cfg || len(after.captured) != 3 {
		t.Errorf("the next exchange has room for %d captures", len(after.captured))
	}
	now := r.w.cfg
	if err := r.w.Configure(Config{}); err == nil || r.w.cfg != now {
		t.Errorf("timeouts of nothing: %v", err)
	}
}
