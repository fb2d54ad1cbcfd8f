package shards

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// forget deletes what a test has made.
func forget(t *testing.T, objects ...string) {
	t.Helper()
	if _, err := shared.kubectl.Run(context.Background(), "", append([]string{"delete", "--ignore-not-found", "--wait=false"}, objects...)...); err != nil {
		t.Error(err)
	}
}

// says waits until a field of an object has a text in it.
func says(t *testing.T, want, path string, object ...string) {
	t.Helper()
	eventually(t, strings.Join(object, " ")+" says "+want, func() error {
		got, err := shared.kubectl.Run(t.Context(), "", append(append([]string{"get"}, object...), "-o", "jsonpath="+path)...)
		if err == nil && !strings.Contains(got, want) {
			err = fmt.Errorf("says %q", got)
		}
		return err
	})
}

// warned waits until there is an event of a reason about an object that has a text in its message.
func warned(t *testing.T, namespace, about, reason, want string) {
	t.Helper()
	says(t, want, "{.items[*].message}", "events", "-n", namespace, "--field-selector", "reason="+reason+",involvedObject.name="+about)
}

const validMessage = `{.status.conditions[?(@.type=="Valid")].status} {.status.conditions[?(@.type=="Valid")].reason} {.status.conditions[?(@.type=="Valid")].message}`

// TestBadInput: Routers, RouteSchedulers, Routes and RouteBindings that the API server takes and that cannot be meant have a condition or an event that says what to do;
// a route that has nothing to do with them is bound and served meanwhile, and one that comes after them, too.
func TestBadInput(t *testing.T) {
	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 30}`), "apply", "-f", "-")
	shared.kubectl.Must(t, router("good", `{"dns": {"domain": "good.bad.test"}, "namespaceSelector": {"matchLabels": {"bad": "yes"}}}`), "create", "-f", "-")
	t.Cleanup(func() {
		forget(t, "router/good", "router/one", "router/two", "router/near", "-n", programs, "deployment/router-good")
		forget(t, "namespace/bad-a", "namespace/bad-b")
		forget(t, "routescheduler/default")
	})
	route := func(namespace, name, host string) {
		t.Helper()
		if host != "" {
			host = fmt.Sprintf(`"host": %q, `, host)
		}
		shared.kubectl.Must(t, fmt.Sprintf(`{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": %q, "namespace": %q}, "spec": {%s"to": {"kind": "Service", "name": "s", "weight": 100}}}`,
			name, namespace, host), "create", "-f", "-")
	}
	served := func(namespace, name string) {
		t.Helper()
		is(t, "routebinding/"+name+".good", "{.status.phase}", "Serving", namespace)
	}
	for _, ns := range []string{"bad-a", "bad-b"} {
		shared.kubectl.Must(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q, "labels": {"bad": "yes"}}}`, ns), "create", "-f", "-")
	}
	startScheduler(t)
	startReplicas(t, "good", 1)
	route("bad-a", "before", "before.bad.test")
	served("bad-a", "before")

	shared.kubectl.Must(t, router("one", `{"dns": {"domain": "twice.bad.test"}}`), "create", "-f", "-")
	shared.kubectl.Must(t, router("two", `{"dns": {"domain": "twice.bad.test"}}`), "create", "-f", "-")
	says(t, "False DomainTaken router one is older and has the domain twice.bad.test too: give this one another", validMessage, "router/two")
	warned(t, "default", "two", "DomainTaken", "give this one another")
	says(t, "True Valid", validMessage, "router/one")

	shared.kubectl.Must(t, router("near", `{"routeSelector": {"matchExpressions": [{"key": "tier", "operator": "Near", "values": ["x"]}]}}`), "create", "-f", "-")
	says(t, "False InvalidSelector routeSelector or namespaceSelector cannot be used", validMessage, "router/near")
	warned(t, "default", "near", "InvalidSelector", "correct it")

	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 30, "strategy": "CEL", "cel": {"expression": "router.nothing +"}}`), "apply", "-f", "-")
	says(t, "False InvalidSpec", validMessage, "routescheduler/default")
	says(t, "routes are bound as before", validMessage, "routescheduler/default")

	route("bad-b", "mine", "before.bad.test")
	says(t, "before.bad.test", `{.metadata.annotations.turnout\.router/message}`, "route/mine", "-n", "bad-b")
	is(t, "route/mine", `{.metadata.annotations.turnout\.router/phase}`, "new", "bad-b")
	warned(t, "bad-b", "mine", "HostAlreadyClaimed", "before.bad.test")

	uid := shared.kubectl.Must(t, "", "get", "route/before", "-n", "bad-a", "-o", "jsonpath={.metadata.uid}")
	shared.kubectl.Must(t, fmt.Sprintf(`{"apiVersion": "turnout.router/v1alpha1", "kind": "RouteBinding", "metadata": {"name": "before.nowhere", "namespace": "bad-a"},
		"spec": {"routeNamespace": "bad-a", "routeName": "before", "routeUID": %q, "router": "nowhere", "dns": "before.bad.test"}}`, uid), "create", "-f", "-")
	eventually(t, "the binding to nobody is deleted", func() error {
		if out, err := shared.kubectl.Run(t.Context(), "", "get", "routebinding/before.nowhere", "-n", "bad-a"); err == nil {
			return fmt.Errorf("there is %s", out)
		}
		return nil
	})
	warned(t, "bad-a", "before", "RouterMissing", "nowhere")

	served("bad-a", "before")
	route("bad-a", "after", "")
	served("bad-a", "after")
	is(t, "route/after", `{.metadata.annotations.turnout\.router/target}`, "bad-a-after.good.bad.test", "bad-a")
	shared.kubectl.Must(t, "", "patch", "router/near", "--type=merge", "-p", `{"spec": {"routeSelector": null}}`)
	says(t, "True Valid", validMessage, "router/near")
	shared.kubectl.Must(t, "", "delete", "router/one")
	says(t, "True Valid", validMessage, "router/two")
}
