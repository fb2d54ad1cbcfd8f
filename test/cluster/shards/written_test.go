package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"turnout/test/cluster"
)

var (
	writtenRouters = flag.Int("written-routers", 3, "routers of TestWritten")
	writtenEach    = flag.Int("written-each", 100, "routes of each of them")
)

// digestion is how long the API server may take to have in its caches what was written behind its back.
const digestion = 30 * time.Minute

// written is the namespace of TestWritten.
const written = "written"

// pattern is a route as routers and schedulers have left it, and its binding.
type pattern struct {
	router, name, uid, bindingName, bindingUID string
	route, binding                             []byte // as etcd has them
}

// TestWritten: routers serve what is bound to them in a cluster with many more routes, and hold little of the others. The API server would take hours to
// make them: but for one of each router they are written into etcd as the first one stands there when it is bound, served and admitted. What the test
// prints is in docs/lab/scale.md.
func TestWritten(t *testing.T) {
	client, err := shared.Client("asker")
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.New(etcd.Config{Endpoints: []string{cluster.EtcdURL()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	startPods(t, written, 1)
	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 3600}`), "apply", "-f", "-")
	routers := make([]string, *writtenRouters)
	for i := range routers {
		routers[i] = fmt.Sprintf("w%d", i)
		shared.kubectl.Must(t, router(routers[i], `{"routeSelector": {"matchLabels": {"written": "yes"}}}`), "create", "-f", "-")
		startReplicas(t, routers[i], 1)
	}
	var patterns []*pattern
	t.Run("patterns", func(t *testing.T) {
		startScheduler(t)
		for _, name := range routers {
			is(t, "router/"+name, "{.status.readyReplicas}", "1")
		}
		patterns = makePatterns(t, store, routers)
	})
	for _, name := range routers {
		shared.kubectl.Must(t, "", "scale", "deployment/router-"+name, "-n", programs, "--replicas=0")
		shared.kubectl.Must(t, "", "wait", "--for=delete", "pod", "-n", programs, "-l", "router="+name, "--timeout=120s")
	}
	begin := time.Now()
	for _, p := range patterns {
		p.write(t, store, *writtenEach-1)
	}
	t.Logf("%d routes and as many bindings were written into etcd in %s", len(routers)*(*writtenEach-1), time.Since(begin).Round(time.Second))
	begin = time.Now()
	for _, name := range routers {
		one := time.Now()
		shared.kubectl.Must(t, "", "scale", "deployment/router-"+name, "-n", programs, "--replicas=1")
		readyWithin(t, digestion, programs, "router-"+name)
		t.Logf("%s was ready after %s", name, time.Since(one).Round(100*time.Millisecond))
	}
	t.Logf("all %d routers, one after the other, were ready after %s", len(routers), time.Since(begin).Round(time.Second))
	ask := asker(t, client)
	for i, p := range patterns {
		for range min(*writtenEach-1, 50) {
			n := rand.IntN(*writtenEach - 1)
			ask(p.router, p.host(n), http.StatusOK)
			ask(patterns[(i+1)%len(patterns)].router, p.host(n), http.StatusServiceUnavailable)
		}
	}
	memory(t, client, "app=router")
	t.Run("scheduler", func(t *testing.T) { leaveAlone(t, store, patterns, client) })
}

// makePatterns makes one route after the other, which go to one router after the other, and waits until each says where it is served.
func makePatterns(t *testing.T, store *etcd.Client, routers []string) []*pattern {
	t.Helper()
	patterns := make([]*pattern, len(routers))
	for i := range routers {
		p := &pattern{name: fmt.Sprintf("pattern-%d", i)}
		patterns[i] = p
		shared.kubectl.Must(t, fmt.Sprintf(`{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": %q, "namespace": %q, "labels": {"written": "yes"}},
			"spec": {"host": "%s.written.test", "to": {"kind": "Service", "name": "echo", "weight": 100}}}`, p.name, written, p.name), "create", "-f", "-")
		is(t, "route/"+p.name, `{.status.ingress[0].conditions[?(@.type=="Admitted")].status} {.metadata.annotations.turnout\.router/phase}`, "True scheduled", written)
		var b struct {
			Items []struct {
				Metadata metav1.ObjectMeta
				Spec     struct{ RouteName, Router string }
				Status   struct{ Phase string }
			}
		}
		eventually(t, "the binding of "+p.name, func() error {
			if err := json.Unmarshal([]byte(shared.kubectl.Must(t, "", "get", "routebindings", "-n", written, "-o", "json")), &b); err != nil {
				return err
			}
			for _, o := range b.Items {
				if o.Spec.RouteName == p.name && o.Status.Phase == "Serving" {
					p.router, p.bindingName, p.bindingUID = o.Spec.Router, o.Metadata.Name, string(o.Metadata.UID)
					return nil
				}
			}
			return fmt.Errorf("there is none among %d that serves", len(b.Items))
		})
		p.uid = shared.kubectl.Must(t, "", "get", "route", p.name, "-n", written, "-o", "jsonpath={.metadata.uid}")
		p.route, p.binding = value(t, store, p.routeKey(p.name)), value(t, store, p.bindingKey(p.bindingName))
	}
	of := make(map[string]bool)
	for _, p := range patterns {
		of[p.router] = true
	}
	if len(of) != len(routers) {
		t.Fatalf("%d routers have the first %d routes", len(of), len(routers))
	}
	return patterns
}

func (p *pattern) routeKey(name string) string {
	return "/registry/route.openshift.io/routes/" + written + "/" + name
}

func (p *pattern) bindingKey(name string) string {
	return "/registry/turnout.router/routebindings/" + written + "/" + name
}

// called is the name of the nth route that is made of the pattern.
func (p *pattern) called(n int) string {
	return strings.Replace(p.name, "pattern", "written", 1) + "-" + strconv.Itoa(n)
}

func (p *pattern) host(n int) string { return p.called(n) + ".written.test" }

// value is what etcd has at a key, but for who wrote which field: that is most of an object in the memory of the API server.
func value(t *testing.T, store *etcd.Client, key string) []byte {
	t.Helper()
	got, err := store.Get(t.Context(), key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, err, got)
	}
	var object, meta map[string]json.RawMessage
	err = json.Unmarshal(got.Kvs[0].Value, &object)
	if err == nil {
		err = json.Unmarshal(object["metadata"], &meta)
	}
	delete(meta, "managedFields")
	if err == nil {
		object["metadata"], err = json.Marshal(meta)
	}
	text, failed := json.Marshal(object)
	if err = errors.Join(err, failed); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return text
}

// opsPerWrite is how many keys one transaction writes, which etcd bounds at 128.
const opsPerWrite = 100

// write writes n routes of the pattern, and their bindings.
func (p *pattern) write(t *testing.T, store *etcd.Client, n int) {
	t.Helper()
	var ops []etcd.Op
	flush := func() {
		if _, err := store.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
		ops = ops[:0]
	}
	for i := range n {
		name, uid := p.called(i), newUID()
		bindingName := strings.Replace(p.bindingName, p.name, name, 1)
		replace := func(text []byte) string {
			for _, pair := range [][2]string{{p.name, name}, {p.uid, uid}, {p.bindingUID, newUID()}} {
				text = bytes.ReplaceAll(text, []byte(pair[0]), []byte(pair[1]))
			}
			return string(text)
		}
		ops = append(ops, etcd.OpPut(p.routeKey(name), replace(p.route)), etcd.OpPut(p.bindingKey(bindingName), replace(p.binding)))
		if len(ops) == opsPerWrite {
			flush()
		}
	}
	if len(ops) > 0 {
		flush()
	}
}

func newUID() string { return string(uuid.NewUUID()) }

// asker returns what asks a router for a host, and fails the test when the answer has not the status.
func asker(t *testing.T, from cluster.Pod) func(router, host string, status int) {
	t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return from.Dial(ctx, network, address)
	}}}
	at := make(map[string]string)
	return func(router, host string, status int) {
		t.Helper()
		if at[router] == "" {
			at[router] = shared.kubectl.Must(t, "", "get", "pod", "-n", programs, "-l", "router="+router, "-o", "jsonpath={.items[0].status.podIP}")
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(at[router], strconv.Itoa(httpPort))+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = host
		resp, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != status {
			t.Errorf("%s at %s: status %d, want %d (%v)", host, router, resp.StatusCode, status, err)
		}
	}
}

// leaveAlone: a scheduler that comes to all these routes writes none of them, and binds a new one.
func leaveAlone(t *testing.T, store *etcd.Client, patterns []*pattern, client cluster.Pod) {
	revisions := func() map[string]int64 {
		all := make(map[string]int64)
		for _, p := range patterns {
			for n := 0; n < *writtenEach-1; n += 1 + *writtenEach/20 {
				for _, key := range []string{p.routeKey(p.called(n)), p.bindingKey(strings.Replace(p.bindingName, p.name, p.called(n), 1))} {
					got, err := store.Get(t.Context(), key)
					if err != nil || len(got.Kvs) != 1 {
						t.Fatalf("%s: %v", key, err)
					}
					all[key] = got.Kvs[0].ModRevision
				}
			}
		}
		return all
	}
	before := revisions()
	begin := time.Now()
	startScheduler(t)
	shared.kubectl.Must(t, fmt.Sprintf(`{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "new", "namespace": %q, "labels": {"written": "yes"}},
		"spec": {"host": "new.written.test", "to": {"kind": "Service", "name": "echo", "weight": 100}}}`, written), "create", "-f", "-")
	is(t, "route/new", `{.status.ingress[0].conditions[?(@.type=="Admitted")].status} {.metadata.annotations.turnout\.router/phase}`, "True scheduled", written)
	t.Logf("a scheduler was started, and had a new route bound and served after %s", time.Since(begin).Round(100*time.Millisecond))
	memory(t, client, "app.kubernetes.io/component=scheduler")
	for key, revision := range revisions() {
		if revision != before[key] {
			t.Errorf("%s was written although nothing has changed", key)
		}
	}
}
