package controller

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestExpiry follows one certificate through its life: what is noted of its route and
// what is logged.
func TestExpiry(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	r := newRig(t, Options{}, func(c *Config) { c.Log = zap.New(core) })
	cert, key := keyPair(t, "a.test")
	own, other := edge(cert, key), edge("", "")
	r.do(aRoute("a", "a.test", 0, own), aRoute("b", "b.test", 0, own), aRoute("c", "c.test", 0, other))
	leaf := r.store.Load().SNI("a.test").Certificate.Leaf
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	expires, expired := "certificate expires on "+at(leaf.NotAfter), "certificate expired on "+at(leaf.NotAfter)
	for _, step := range []struct {
		name string
		now  time.Time
		note string // "" = none about time
		logs int64  // 1 if something is logged now
		soon int64
	}{
		{"not valid yet", leaf.NotBefore.Add(-time.Minute), "certificate is not valid before " + at(leaf.NotBefore), 0, 0},
		{"fresh", leaf.NotAfter.Add(-soonExpired), "", 0, 0},
		{"soon", leaf.NotAfter.Add(-soonExpired + expiryEvery), expires, 1, 2},
		{"looked at a moment ago", leaf.NotAfter.Add(-soonExpired + expiryEvery + time.Second), expires, 0, 2},
		{"nothing new", leaf.NotAfter.Add(-soonExpired + 3*expiryEvery), expires, 0, 2},
		{"a day later", leaf.NotAfter.Add(-soonExpired + 2*expiryRepeat), expires, 1, 2},
		{"over", leaf.NotAfter.Add(time.Minute), expired, 1, 0},
	} {
		r.now = step.now
		r.c.state.warnExpiry(r.now)
		for _, name := range []string{"a", "b"} {
			notes := r.c.Notes("ns", name)
			if step.note == "" && slices.ContainsFunc(notes, func(n string) bool { return n == expires || n == expired }) ||
				step.note != "" && !slices.Contains(notes, step.note) {
				t.Errorf("%s: notes of %s are %q, want %q in them", step.name, name, notes, step.note)
			}
		}
		entries := logs.TakeAll()
		if int64(len(entries)) != step.logs {
			t.Errorf("%s: logged %v", step.name, entries)
			continue
		}
		for _, e := range entries {
			fields := e.ContextMap()
			if fields["soon"] != step.soon || fields["expired"] != 2-step.soon || len(fields["routes"].([]any)) != 2 {
				t.Errorf("%s: logged %v", step.name, fields)
			}
		}
	}
	r.do(aRoute("a", "a.test", 0, other), aRoute("b", "b.test", 0, other))
	r.now = r.now.Add(2 * expiryRepeat)
	r.c.state.warnExpiry(r.now)
	if entries := logs.TakeAll(); len(entries) != 0 {
		t.Errorf("no route has the certificate any more, and %v is logged", entries)
	}
	if notes := r.c.Notes("ns", "a"); slices.Contains(notes, expired) {
		t.Errorf("notes are %q without a certificate", notes)
	}
}
