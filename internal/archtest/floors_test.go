package archtest

import (
	"slices"
	"strings"
	"testing"
)

// floors are all packages of the module from the ground up: a package imports only what is named before it, on a lower floor or to
// its left. An entry that ends with "/..." is a folder whose packages may import each other: files of a deployment, or a module of its own.
var floors = []struct {
	name     string
	packages string
}{
	{"what knows nothing else", "internal/bound internal/nearest internal/problem internal/option internal/option/haproxy internal/cli internal/terminal internal/adminclient internal/keyed internal/list internal/spare internal/share internal/work internal/expression internal/shared internal/target internal/cgroup internal/memory internal/traffic internal/filewatch internal/handover internal/overload"},
	{"bytes, sockets and keys", "internal/opensslkey internal/buildinfo internal/keypair internal/certchain internal/wire/protocol internal/wire/framing internal/wire/field internal/wire/tracecontext internal/wire/http1 internal/wire/h2frame internal/wire/h2session internal/reactor/engine internal/reactor internal/reactor/memnet"},
	{"who gets a request", "balancer internal/ratelimit tlsmux/clientcert routing/cors routing/header routing/rewrite routing/redirect routing"},
	{"TLS", "tlsmux"},
	{"one exchange", "proxy/logformat proxy/register proxy/identity proxy/detached proxy"},
	{"its protocols", "proxy/tunnel proxy/datagram proxy/upstream proxy/h1 proxy/h2"},
	{"beside the requests", "internal/pulse internal/health internal/accesslog internal/tracing"},
	{"the request path", "internal/server"},
	{"names", "internal/dns/zone internal/dns/zonefile internal/dns/server"},
	{"where routes come from", `
		controller/shard/api
		controller/source
		controller/source/local
		controller/source/folder
		controller/endpoints
		controller/admit
		controller/translate
		controller/turns
		controller/expansion
		controller/ingress
		controller/gateway/condition
		controller/gateway/translate
		controller/gateway/parameters
		controller/gateway
		controller/gateway/convert
		controller/ingress/convert
		controller/lease
		controller/ticketkeys
		controller/status
		controller/status/gateways
		controller/owned
		controller/expose
		controller/ingresscontroller
		controller/shard
		controller/shard/strategy
		controller/shard/strategy/expression
		controller/shard/strategy/webhook
		controller
		controller/source/cluster
		controller/ingress/converter
		controller/shard/fleet
		controller/shard/show
		controller/shard/scheduler
		controller/shard/member
		internal/option/kubectl
		internal/option/admission
		internal/option/ingresses
	`},
	{"names of shards", `
		controller/shard/zones
		controller/shard/naming
		controller/shard/externaldns
	`},
	{"what people see", `
		internal/signals
		internal/crew
		internal/gateways
		internal/logging
		internal/follow
		internal/tickets
		internal/live
		internal/metrics
		internal/offline
		internal/togateway
		internal/explain
		internal/view
		internal/page
		internal/inspect
		internal/admin
		internal/access
		internal/elected
		internal/convert
		internal/schedule
		internal/nameserver
		internal/shards
		internal/demo
	`},
	{"programs", "deploy/... cmd/turnout"},
	{"what tests share", "internal/testkit/testaddr internal/testkit/testcert internal/testkit/testhttp internal/testkit/testrig internal/testkit/testtime internal/testkit/testotlp controller/shard/sim internal/testkit internal/archtest"},
	{"what measures the programs", "bench/site bench/load bench/report bench/peer bench/budget bench/chaos bench/adversary bench/soak bench/shards bench/run"},
	{"what tests them", "test/conformance test/sidebyside test/adversary test/ingress test/convert test/deploy test/image test/testssl test/grpc test/gateway/... test/cluster/... test/kube/..."},
}

// place is where a package stands among all, from the bottom; -1: nowhere. tree is the entry that it stands there by.
func place(pkg string) (at int, tree string) {
	n := 0
	for _, floor := range floors {
		for _, entry := range strings.Fields(floor.packages) {
			tree, folder := strings.CutSuffix(entry, "/...")
			if pkg == tree || folder && within(pkg, tree) {
				return n, tree
			}
			n++
		}
	}
	return -1, ""
}

// TestImportsRunDownwards: what the lists of directions permit one by one does not lead up the floors either.
func TestImportsRunDownwards(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		from, tree := place(f.pkg)
		if from < 0 {
			t.Errorf("%s: package %s has no place; give it one among the floors", f.path, f.pkg)
			continue
		}
		for _, imported := range f.imports {
			target, ok := strings.CutPrefix(imported, "turnout/")
			if !ok {
				continue
			}
			if to, other := place(target); to > from || to < 0 || to == from && other != tree {
				t.Errorf("%s imports %s, which stands above %s", f.path, imported, f.pkg)
			}
		}
	}
}

// TestFloorsExist: each package is named once, and none that is gone.
func TestFloorsExist(t *testing.T) {
	seen := map[string]bool{}
	for _, floor := range floors {
		for _, entry := range strings.Fields(floor.packages) {
			tree, folder := strings.CutSuffix(entry, "/...")
			if seen[tree] {
				t.Errorf("%s is named twice", tree)
			}
			seen[tree] = true
			if !slices.ContainsFunc(theModule(t).files, func(f source) bool {
				return !f.test && (f.pkg == tree || folder && within(f.pkg, tree)) || folder && within(f.pkg, tree)
			}) {
				t.Errorf("there is no %s", tree)
			}
		}
	}
}

// TestNothingOfTests: the program contains no package that is there for tests, however it would come by it.
func TestNothingOfTests(t *testing.T) {
	imports := map[string][]string{}
	for f := range theModule(t).production {
		imports[f.pkg] = append(imports[f.pkg], f.imports...)
	}
	linked := map[string]string{"cmd/turnout": ""} // package: who imports it
	for next := []string{"cmd/turnout"}; len(next) > 0; next = next[1:] {
		for _, imported := range imports[next[0]] {
			target, ours := strings.CutPrefix(imported, "turnout/")
			if _, known := linked[target]; ours && !known {
				linked[target] = next[0]
				next = append(next, target)
			}
			if imported == "testing" {
				t.Errorf("%s imports testing, and cmd/turnout contains it", next[0])
			}
		}
	}
	if _, ok := linked["internal/reactor/engine"]; !ok {
		t.Fatalf("the program has no event loops: %v", linked)
	}
	for pkg, by := range linked {
		for _, tree := range []string{"internal/reactor/memnet", "internal/testkit", "internal/archtest", "controller/shard/sim", "bench", "test"} {
			if within(pkg, tree) {
				t.Errorf("cmd/turnout contains %s, imported by %s: it is for tests", pkg, by)
			}
		}
	}
}
