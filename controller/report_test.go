package controller

import (
	"strings"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
	"turnout/controller/status"
)

// reporter is a status.Reporter that writes down what is reported to it.
type reporter struct {
	mu   sync.Mutex
	log  []string
	hook func(route *routev1.Route, entry *routev1.RouteIngress) // of Report
}

func (r *reporter) add(words ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.Join(words, " "))
}

func (r *reporter) Observe(route *routev1.Route)  { r.add("observe", route.Name) }
func (r *reporter) Withdraw(route *routev1.Route) { r.add("withdraw", route.Name) }

func (r *reporter) Report(route *routev1.Route, entry *routev1.RouteIngress) {
	c := entry.Conditions[0]
	r.add(strings.TrimSpace("report " + route.Name + " " + string(c.Status) + " " + c.Reason))
	if r.hook != nil {
		r.hook(route, entry)
	}
}

// taken returns what was reported since the last call.
func (r *reporter) taken() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.log, ", ")
	r.log = nil
	return out
}

func TestReports(t *testing.T) {
	reports := new(reporter)
	r := newRig(t, Options{RouterName: "mine"}, func(c *Config) { c.Status = reports })
	reports.hook = func(route *routev1.Route, entry *routev1.RouteIngress) {
		admitted := entry.Conditions[0].Status == "True"
		if served := r.serves(entry.Host, "/") == route.Name; served != admitted {
			t.Errorf("%s: admitted %v is reported while served %v", route.Name, admitted, served)
		}
	}
	for _, step := range []struct {
		id    string
		event source.Event
		want  string
	}{
		{"first", aRoute("a", "h.test", 1), "report a True, observe a"},
		{"again", aRoute("a", "h.test", 1), "observe a"},
		{"labels", aRoute("a", "h.test", 1, func(o *routev1.Route) { o.Labels = map[string]string{"x": "y"} }), "observe a"},
		{"our status comes back", aRoute("a", "h.test", 1, admittedBy("mine", "h.test")), "observe a"},
		{"somebody takes our status away", aRoute("a", "h.test", 1), "observe a"},
		{"endpoints", aSlice("s-1", "s", "10.0.0.1"), ""},
		{"host", aRoute("a", "h2.test", 1), "report a True, observe a"},
		{"younger", aRoute("b", "h2.test", 2), "report b False HostAlreadyClaimed, observe b"},
		{"made again", aRoute("a", "h3.test", 3, func(o *routev1.Route) { o.UID = "new" }), "withdraw a, report a True, report b True, observe a"},
		{"gone", gone(source.Route, "a"), "withdraw a"},
		{"gone twice", gone(source.Route, "a"), ""},
		{"status of before", aRoute("c", "c.test", 2, admittedBy("mine", "c.test")), "report c True, observe c"},
	} {
		r.do(step.event)
		got := strings.ReplaceAll(reports.taken(), "report b True, report a True", "report a True, report b True")
		if got != step.want {
			t.Errorf("%s: reported %q, want %q", step.id, got, step.want)
		}
	}
}

// admittedBy gives a route the status of a router that admits it.
func admittedBy(router, host string) func(*routev1.Route) {
	return func(o *routev1.Route) {
		o.Status.Ingress = []routev1.RouteIngress{{
			Host: host, RouterName: router, WildcardPolicy: "None",
			Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: "True"}},
		}}
	}
}

// TestUnservable: nothing is known to be refused by later versions. A
// SHA1 certificate is rejected as garbage is.
func TestUnservable(t *testing.T) {
	cert, key := keyPair(t, "h.test")
	before := func(o *routev1.Route) {
		admittedBy("mine", "h.test")(o)
		o.Status.Ingress[0].Conditions = append(o.Status.Ingress[0].Conditions,
			routev1.RouteIngressCondition{Type: status.Unservable, Status: "True", Reason: "UpgradeRouteValidationFailed"})
	}
	garbage := func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: "x"}
	}
	for _, c := range []struct {
		id      string
		options Options
		change  []func(*routev1.Route)
		want    string // reason of the condition, "" for none
	}{
		{"no tls: absent", Options{}, nil, ""},
		{"no tls: absent set before", Options{}, []func(*routev1.Route){before}, ""},
		{"garbage reencrypt: absent", Options{}, []func(*routev1.Route){garbage}, ""},
		{"garbage reencrypt: absent set before", Options{}, []func(*routev1.Route){before, garbage}, "UpgradeRouteValidationFailed"},
		{"expired edge: absent", Options{}, []func(*routev1.Route){edge(cert, key)}, ""},
		{"forced", Options{ForceUnservable: true}, nil, "ForceUpgradeValidationCondition"},
		{"forced, rejected", Options{ForceUnservable: true}, []func(*routev1.Route){garbage}, ""},
		{"forced, set before", Options{ForceUnservable: true}, []func(*routev1.Route){before}, "ForceUpgradeValidationCondition"},
		{"off", Options{SkipUpgradeValidation: true, ForceUnservable: true}, []func(*routev1.Route){before}, "UpgradeRouteValidationFailed"},
	} {
		c.options.RouterName = "mine"
		r := newRig(t, c.options)
		r.now = time.Now().AddDate(1, 0, 0) // the certificate has expired
		r.do(aRoute("a", "h.test", 0, c.change...))
		r.do(aRoute("a", "h.test", 0, c.change...))
		shown, _ := r.c.Route("ns", "a")
		got := ""
		for _, condition := range shown.Status.Ingress[0].Conditions {
			if condition.Type == status.Unservable {
				got = condition.Reason
			}
		}
		if got != c.want {
			t.Errorf("%s: reason %q, want %q", c.id, got, c.want)
		}
	}
}
