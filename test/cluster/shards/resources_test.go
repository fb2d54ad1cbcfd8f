package shards

import (
	"fmt"
	"strings"
	"testing"
)

const (
	asScheduler = "--as=system:serviceaccount:turnout:scheduler"
	goodRoute   = `{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "plain", "namespace": "default"}, "spec": {"host": "plain.test", "to": {"kind": "Service", "name": "s", "weight": 100}}}`
)

func router(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "turnout.router/v1alpha1", "kind": "Router", "metadata": {"name": %q}, "spec": %s}`, name, spec)
}

func binding(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "turnout.router/v1alpha1", "kind": "RouteBinding", "metadata": {"name": %q, "namespace": "default"}, "spec": %s}`, name, spec)
}

func schedulerObject(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "turnout.router/v1alpha1", "kind": "RouteScheduler", "metadata": {"name": %q}, "spec": %s}`, name, spec)
}

// policed waits until the admission policies are in force, which is some time after they are made.
func policed(t *testing.T) {
	t.Helper()
	eventually(t, "admission policies", func() error {
		for _, object := range []string{
			binding("b", `{"routeNamespace": "kube-system", "routeName": "r", "routeUID": "1", "router": "a", "dns": "r.test"}`),
			strings.Replace(goodRoute, `"name": "plain",`, `"name": "other", "annotations": {"turnout.router/phase": "scheduled"},`, 1),
		} {
			if out, err := shared.kubectl.Run(t.Context(), object, "create", "--dry-run=server", "-f", "-"); err == nil {
				return fmt.Errorf("accepted: %s", out)
			}
		}
		return nil
	})
}

// TestBadResourcesAreRefused: what cannot be meant is refused by the API server, in words that say what to do.
func TestBadResourcesAreRefused(t *testing.T) {
	policed(t)
	for name, c := range map[string]struct{ object, want string }{
		"a domain of one label":        {router("a", `{"dns": {"domain": "local"}}`), "spec.dns.domain"},
		"a domain with capitals":       {router("a", `{"dns": {"domain": "Shard1.test"}}`), "spec.dns.domain"},
		"an address that is none":      {router("a", `{"addresses": ["shard1.test"]}`), "an address is an IPv4 or IPv6 address"},
		"a taint that nobody knows":    {router("a", `{"taints": [{"key": "m", "effect": "NoExecute"}]}`), "NoSchedule"},
		"a long name":                  {router(strings.Repeat("a", 64), `{}`), "at most 63 characters"},
		"negative replicas":            {router("a", `{"replicas": -1}`), "spec.replicas"},
		"a workload that nobody keeps": {router("a", `{"workload": "StatefulSet"}`), "DaemonSet"},
		"a TTL of zero":                {router("a", `{"dns": {"domain": "a.test", "ttlSeconds": 0}}`), "spec.dns.ttlSeconds"},
		"a server of names, no host":   {router("a", `{"dns": {"domain": "a.test", "nameServers": [{"name": "ns 1"}]}}`), "nameServers"},
		"a binding without a router":   {binding("b", `{"routeNamespace": "default", "routeName": "r", "routeUID": "1", "dns": "r.test"}`), "spec.router"},
		"a binding of another space":   {binding("b", `{"routeNamespace": "kube-system", "routeName": "r", "routeUID": "1", "router": "a", "dns": "r.test"}`), "routeNamespace must be the namespace of the RouteBinding"},
		"a second scheduler":           {schedulerObject("other", `{}`), "there is one RouteScheduler, named default"},
		"a strategy that nobody has":   {schedulerObject("default", `{"strategy": "Best"}`), "RoundRobin"},
		"no expression":                {schedulerObject("default", `{"strategy": "CEL"}`), "strategy CEL needs cel.expression"},
		"no webhook":                   {schedulerObject("default", `{"strategy": "Webhook"}`), "strategy Webhook needs webhook.url"},
		"a webhook by FTP":             {schedulerObject("default", `{"strategy": "Webhook", "webhook": {"url": "ftp://a.test/"}}`), "a URL with http or https"},
		"lost at once":                 {schedulerObject("default", `{"lostAfterSeconds": 1}`), "lostAfterSeconds"},
	} {
		out, err := shared.kubectl.Run(t.Context(), c.object, "create", "-f", "-")
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: want an error with %q, have %v, %s", name, c.want, err, out)
		}
	}
}

// TestWhatCannotChange: names of routes must not break, and a binding says what was decided.
func TestWhatCannotChange(t *testing.T) {
	shared.kubectl.Must(t, router("fixed", `{"dns": {"domain": "fixed.test"}}`), "create", "-f", "-")
	shared.kubectl.Must(t, binding("r.fixed", `{"routeNamespace": "default", "routeName": "r", "routeUID": "1", "router": "fixed", "dns": "r.test"}`), "create", "-f", "-")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the domain":      {[]string{"router", "fixed", "--type=merge", "-p", `{"spec": {"dns": {"domain": "other.test"}}}`}, "cannot be changed, because names of routes would break"},
		"the router":      {[]string{"routebinding", "r.fixed", "--type=merge", "-p", `{"spec": {"router": "other"}}`}, "a binding cannot be changed"},
		"the name in DNS": {[]string{"routebinding", "r.fixed", "--type=merge", "-p", `{"spec": {"dns": "other.test"}}`}, "a binding cannot be changed"},
	} {
		out, err := shared.kubectl.Run(t.Context(), "", append([]string{"patch"}, c.args...)...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: want an error with %q, have %v, %s", name, c.want, err, out)
		}
	}
	shared.kubectl.Must(t, "", "patch", "routebinding", "r.fixed", "--type=merge", "-p", `{"spec": {"leaving": true}}`)
	out, err := shared.kubectl.Run(t.Context(), "", "patch", "routebinding", "r.fixed", "--type=merge", "-p", `{"spec": {"leaving": false}}`)
	if err == nil || !strings.Contains(out, "does not come back") {
		t.Errorf("a binding that leaves came back: %v, %s", err, out)
	}
	if out := shared.kubectl.Must(t, "", "get", "routers"); !strings.Contains(out, "DOMAIN") || !strings.Contains(out, "fixed.test") {
		t.Errorf("columns of Routers: %s", out)
	}
	if out := shared.kubectl.Must(t, "", "get", "rb"); !strings.Contains(out, "ROUTER") || !strings.Contains(out, "r.test") {
		t.Errorf("columns of RouteBindings: %s", out)
	}
	if out := shared.kubectl.Must(t, "", "get", "routebindings", "--field-selector", "spec.router=fixed", "-o", "name"); !strings.Contains(out, "r.fixed") {
		t.Errorf("bindings by their router: %s", out)
	}
	if out := shared.kubectl.Must(t, "", "get", "routebindings", "--field-selector", "spec.router=none", "-o", "name"); strings.Contains(out, "r.fixed") {
		t.Errorf("bindings of another router: %s", out)
	}
	shared.kubectl.Must(t, "", "delete", "routebinding/r.fixed", "router/fixed")
}

// TestExplain: each field is explained where kubectl explain shows it.
func TestExplain(t *testing.T) {
	for _, kind := range []string{"routers", "routebindings", "routeschedulers"} {
		out := shared.kubectl.Must(t, "", "explain", kind, "--recursive=false")
		if strings.Contains(out, "<empty>") {
			t.Errorf("%s: %s", kind, out)
		}
		for _, part := range []string{"spec", "status"} {
			out := shared.kubectl.Must(t, "", "explain", kind+"."+part)
			_, fields, found := strings.Cut(out, "FIELDS:")
			if !found {
				t.Fatalf("%s.%s has no fields: %s", kind, part, out)
			}
			for field := range strings.SplitSeq(fields, "\n\n") {
				head, text, _ := strings.Cut(strings.TrimSpace(field), "\n")
				if head != "" && len(strings.TrimSpace(text)) < 10 || strings.Contains(text, "<no description>") {
					t.Errorf("%s.%s: %q is not explained: %q", kind, part, head, text)
				}
			}
		}
	}
}

// TestUsersSetNoPhase: phase and name of a route are the scheduler's.
func TestUsersSetNoPhase(t *testing.T) {
	policed(t)
	shared.kubectl.Must(t, goodRoute, "create", "-f", "-")
	const route = "route.route.openshift.io/plain"
	for _, mine := range []string{"turnout.router/phase=scheduled", "turnout.router/dns=other.test", "turnout.router/target=other.test", "turnout.router/routers=a", "turnout.router/message=x"} {
		if out, err := shared.kubectl.Run(t.Context(), "", "annotate", route, mine); err == nil || !strings.Contains(out, "set by the scheduler alone") {
			t.Errorf("%s: %v, %s", mine, err, out)
		}
	}
	if out, err := shared.kubectl.Run(t.Context(), "", "label", route, "bound.turnout.router/a="); err == nil || !strings.Contains(out, "set by the scheduler alone") {
		t.Errorf("a label: %v, %s", err, out)
	}
	if out, err := shared.kubectl.Run(t.Context(), strings.Replace(goodRoute, `"name": "plain",`, `"name": "other", "annotations": {"turnout.router/phase": "scheduled"},`, 1), "create", "-f", "-"); err == nil {
		t.Errorf("a new route has a phase: %s", out)
	}
	shared.kubectl.Must(t, "", "annotate", route, "turnout.router/phase=scheduled", "turnout.router/dns=plain.test", asScheduler)
	shared.kubectl.Must(t, "", "label", route, "bound.turnout.router/a=", asScheduler)
	shared.kubectl.Must(t, "", "annotate", route, "else=fine")
	if out, err := shared.kubectl.Run(t.Context(), "", "annotate", "--overwrite", route, "turnout.router/dns=other.test"); err == nil {
		t.Errorf("a name was changed: %s", out)
	}
	shared.kubectl.Must(t, goodRoute, "replace", "-f", "-") // as from a file, which has none of it
	shared.kubectl.Must(t, "", "delete", route)
}
