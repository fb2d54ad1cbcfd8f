package status

import (
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestSameOpinion is about changes of this router's entry by somebody else.
func TestSameOpinion(t *testing.T) {
	no := admitted("False", "R", "m", earlier)
	extra := routev1.RouteIngressCondition{Type: unservable, Status: "True"}
	bare := routev1.RouteIngressCondition{Type: routev1.RouteAdmitted, Status: "False"}
	for _, c := range []struct {
		id   string
		a, b *routev1.RouteIngress
		same bool
	}{
		{"none is not contended", entry("h", no), entry("h", no), true},
		{"condition added is contended", entry("h", no), entry("h", no, extra), false},
		{"condition removed is contended", entry("h", no, extra), entry("h", no), false},
		{"type changed is contended", entry("h", no), entry("h", routev1.RouteIngressCondition{Type: "Other", Status: "False", Reason: "R", Message: "m"}), false},
		{"status changed, empty reason and message is contended", entry("h", bare), entry("h", admitted("True", "", "", earlier)), false},
		{"reason changed is contended", entry("h", no), entry("h", admitted("False", "S", "m", earlier)), false},
		{"message changed is contended", entry("h", no), entry("h", admitted("False", "R", "n", earlier)), false},
		{"only time changed is not contended", entry("h", no), entry("h", admitted("False", "R", "m", atNow)), true},
		{"reason is ExternalCertificateSecretUpdated on either side is not contended", entry("h", no), entry("h", admitted("True", "ExternalCertificateSecretUpdated", "", earlier)), true},
		{"reason is ExternalCertificateSecretUpdated on either side is not contended other side", entry("h", admitted("True", "ExternalCertificateSecretUpdated", "", earlier)), entry("h", no), true},
		{"could not be got", entry("h", no), entry("h", admitted("False", "ExternalCertificateGetFailed", "", earlier)), false},
		{"host", entry("h", no), entry("i", no), false},
		{"none", nil, nil, true},
		{"removed", entry("h", no), nil, false},
	} {
		if got := sameOpinion(c.a, c.b); got != c.same {
			t.Errorf("%s: same %v, want %v", c.id, got, c.same)
		}
	}
}

// TestContention: changes by somebody else, one after the other.
func TestContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		w := start(t, api, func(cfg *WriterConfig) { cfg.Resync = 10 * time.Minute })
		mine := want("mine", yesNow())
		foreign := func(host string) *routev1.Route {
			return api.change("a", func(r *routev1.Route) { r.Status.Ingress[0].Host = host })
		}
		step := func(id string, d time.Duration, writes int, host string) {
			t.Helper()
			pass(d)
			if n, got := api.count("write"), api.get("a").Status.Ingress[0].Host; n != writes || got != host {
				t.Errorf("%s: %d writes, host %s; want %d, %s", id, n, got, writes, host)
			}
		}
		w.Report(api.put(aRoute("a")), mine)
		step("first own write: written", 2*time.Second, 1, "mine")
		w.Report(api.get("a"), mine)
		step("first own write, again: nothing", 2*time.Second, 1, "mine")
		w.Observe(foreign("x"))
		step("someone changes the host, informer not involved: written back, informer reports one foreign change: candidate, still writes", 2*time.Second, 2, "mine")
		w.Observe(api.get("a"))
		step("informer reports our own value: not contended", 2*time.Second, 2, "mine")
		w.Observe(foreign("y"))
		step("informer reports a second, different value: contended, no write", 2*time.Second, 2, "y")
		w.Observe(foreign("z"))
		step("further foreign change plus flush inside the interval: still contended", 40*time.Second, 2, "z")
		if s := w.Stats(); s.Contended == 0 || s.Pending != 0 {
			t.Errorf("further foreign change plus flush inside the interval: still contended: %+v", s)
		}
		pass(3 * time.Minute)
		w.Observe(api.get("a"))
		step("3 minutes later, flush: writes again", time.Second, 3, "mine")
	})
}

// TestOwnChanges: a router that changes its mind does not contend with itself.
func TestOwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		w := start(t, api)
		route := api.put(aRoute("a"))
		for i := range 50 {
			host := string(rune('a' + i%26))
			w.Report(route, want(host, yesNow()))
			pass(1500 * time.Millisecond)
			route = api.get("a")
			w.Observe(route)
			if got := said(route, "test1"); got != host+" True" {
				t.Fatalf("change %d: %s", i, got)
			}
		}
		if s := w.Stats(); s.Written != 50 || s.Contended != 0 || len(w.contention.routes) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestPause: after more than five contentions in a namespace all routes there that somebody changed are left alone, and no others.
func TestPause(t *testing.T) {
	at := time.Unix(1000, 0)
	c := newContention(time.Minute)
	c.changed("ns", "candidate", entry("x"), at)
	c.changed("elsewhere", "far", entry("x"), at)
	for i := range maxContentions + 1 {
		uid := types.UID(rune('a' + i))
		c.changed("ns", uid, entry("x"), at)
		if c.holds(uid, at) || c.holds("candidate", at) {
			t.Fatalf("held after %d contentions and a candidate", i)
		}
		c.changed("ns", uid, entry("y"), at)
		if !c.holds(uid, at) || c.holds("candidate", at) != (i == maxContentions) {
			t.Fatalf("after %d contentions: %v, others %v", i+1, c.holds(uid, at), c.holds("candidate", at))
		}
	}
	c.changed("ns", "late", entry("x"), at)
	if !c.holds("late", at) {
		t.Error("a route that is changed during the pause is written")
	}
	if c.holds("untouched", at) || c.holds("far", at) {
		t.Error("the pause reaches routes that nobody changed, or another namespace")
	}
	if n := c.flush(at.Add(30 * time.Second)); n != maxContentions+1 || !c.holds("candidate", at) {
		t.Errorf("%d contentions; contended routes do not count after a flush in the interval", n)
	}
	if n := c.flush(at.Add(2 * time.Minute)); n != 0 || c.holds("candidate", at) || len(c.routes) != 3 {
		t.Errorf("still held after the interval: %d, %v", n, c.routes)
	}
	c.settle(nil)
	if len(c.quarrels) != 0 {
		t.Errorf("quarrels that are over are kept: %v", c.quarrels)
	}
	c = newContention(time.Minute)
	c.changed("ns", "b", entry("x"), at)
	c.flush(at.Add(contentionMemory * time.Minute))
	if c.routes["b"] == nil {
		t.Error("a candidate is forgotten too soon")
	}
	c.flush(at.Add(contentionMemory*time.Minute + 1))
	if c.routes["b"] != nil {
		t.Error("a candidate is never forgotten")
	}
}
