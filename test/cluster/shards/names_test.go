package shards

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/cluster/process"
)

// Where the two servers of names listen in the network of the test.
const (
	primaryAddr   = "127.0.0.1:5300"
	secondaryAddr = "127.0.0.1:5301"
)

// run starts a program for as long as the test runs.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join("..", "bin", "logs-shards", filepath.Base(name)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Spec{Path: name, Args: args, Output: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
}

// asked are the addresses that a server has for a name, in order.
func asked(server, name string) ([]string, error) {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), dns.TypeA)
	m, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, server)
	if err != nil {
		return nil, err
	}
	if m.Rcode != dns.RcodeSuccess {
		return nil, fmt.Errorf("%s has no %s: %s", server, name, dns.RcodeToString[m.Rcode])
	}
	var all []string
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok {
			all = append(all, a.A.String())
		}
	}
	slices.Sort(all)
	return all, nil
}

// leads waits until a name leads to the addresses of a Router, of which there are so many, at the primary and at the secondary.
func leads(t *testing.T, name, router string, replicas int) {
	t.Helper()
	for _, server := range []string{primaryAddr, secondaryAddr} {
		begin := time.Now()
		eventually(t, name+" at "+server, func() error {
			want := strings.Fields(shared.kubectl.Must(t, "", "get", "router", router, "-o", "jsonpath={.status.addresses[*]}"))
			slices.Sort(want)
			got, err := asked(server, name)
			if err == nil && (len(want) != replicas || !slices.Equal(got, want)) {
				err = fmt.Errorf("leads to %v, and router %s is at %v, of %d replicas", got, router, want, replicas)
			}
			return err
		})
		t.Logf("%s says so after %s", server, time.Since(begin).Round(10*time.Millisecond))
	}
}

// TestNames: names lead to the pods of the Router that has the route, at turnout dns with the permissions that it is shipped with, and at a secondary of another
// make that transfers the zones: when pods come, when the route moves, and when they go.
func TestNames(t *testing.T) {
	const names = "names"
	begin := time.Now()
	shared.kubectl.Must(t, "", "apply", "-f", filepath.Join("..", "..", "..", "deploy", "manifests", "dns", "rbac.yaml"))
	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 30}`), "apply", "-f", "-")
	for _, name := range []string{"n1", "n2"} {
		shared.kubectl.Must(t, router(name, fmt.Sprintf(`{"dns": {"domain": "%s.names.test", "ttlSeconds": 1}, "routeSelector": {"matchLabels": {"names": "yes"}}}`, name)), "create", "-f", "-")
		t.Cleanup(func() { forget(t, "router/"+name, "-n", programs, "deployment/router-"+name) })
	}
	config := filepath.Join(t.TempDir(), "knot.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
server:
  rundir: %[1]s
  listen: 127.0.0.1@5301
database:
  storage: %[1]s
log:
  - target: stderr
    any: info
remote:
  - id: primary
    address: 127.0.0.1@5300
acl:
  - id: notified
    address: 127.0.0.1
    action: notify
template:
  - id: default
    storage: %[1]s
    semantic-checks: on
zone:
  - domain: n1.names.test
    master: primary
    acl: notified
  - domain: n2.names.test
    master: primary
    acl: notified
`, filepath.Dir(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join("..", "bin", "turnout"), "dns", "--kubeconfig", string(shared.kubectl), "--as", "system:serviceaccount:turnout:dns", "--listen", primaryAddr, "--admin-addr", "127.0.0.1:0",
		"--ns", "ns1.example.com", "--allow-transfer", "127.0.0.1", "--notify", secondaryAddr, "--shutdown-delay", "0s")
	run(t, "/usr/sbin/knotd", "-c", config)
	startScheduler(t)
	startReplicas(t, "n1", 1)
	startReplicas(t, "n2", 1)
	if _, err := shared.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(t, "namespace/"+names) })
	shared.kubectl.Must(t, `{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "web", "namespace": "names", "labels": {"names": "yes"}}, "spec": {"to": {"kind": "Service", "name": "s", "weight": 100}}}`, "create", "-f", "-")
	const annotation = `jsonpath={.metadata.annotations.turnout\.router/%s}`
	var has string
	eventually(t, "the Router of the route", func() error {
		if has = shared.kubectl.Must(t, "", "get", "route/web", "-n", names, "-o", fmt.Sprintf(annotation, "routers")); has == "" {
			return fmt.Errorf("nobody has it: %s", shared.kubectl.Must(t, "", "get", "route/web", "-n", names, "-o", fmt.Sprintf(annotation, "message")))
		}
		return nil
	})
	name := shared.kubectl.Must(t, "", "get", "route/web", "-n", names, "-o", fmt.Sprintf(annotation, "target"))
	if want := names + "-web." + has + ".names.test"; name != want {
		t.Fatalf("the route is named %q, want %q", name, want)
	}
	other := map[string]string{"n1": "n2", "n2": "n1"}[has]
	leads(t, name, has, 1)
	shared.kubectl.Must(t, "", "scale", "deployment/router-"+has, "-n", programs, "--replicas=2")
	leads(t, name, has, 2)
	leads(t, "anything."+other+".names.test", other, 1)
	shared.kubectl.Must(t, "", "patch", "router/"+has, "--type=merge", "-p", `{"spec": {"taints": [{"key": "maintenance", "effect": "Drain"}]}}`)
	leads(t, name, other, 1)
	leads(t, "anything."+has+".names.test", has, 2)
	t.Logf("all of it took %s", time.Since(begin).Round(time.Second))
}
