package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// direction says which packages of the module a package may import. A package that is not
// listed fails: the change that adds one decides where it stands.
var direction = []struct {
	tree   string
	may    []string // packages, each with what lies below it
	reason string
}{
	{"internal/bound", nil, "names and counters; whose they are is up to who counts"},
	{"internal/nearest", nil, "words; what they name is up to who asks"},
	{"internal/cli", []string{"internal/nearest", "internal/option"}, "help and completion of what is in tables; what commands do is up to the program"},
	{"internal/buildinfo", []string{"internal/opensslkey"}, "what was built, and with which library"},
	{"internal/terminal", nil, "what a file is; what is written there is up to others"},
	{"internal/keyed", nil, "a table of values; it knows nothing of what stands in it"},
	{"internal/list", nil, "a list; it knows nothing of what stands in it"},
	{"internal/problem", nil, "a list; what is wrong is up to those who find it"},
	{"internal/spare", nil, "a list; it knows nothing of what stands in it"},
	{"internal/share", nil, "units by namespace; it does not know the resource"},
	{"internal/work", nil, "units of work; it does not know the operation"},
	{"internal/expression", nil, "text and input; it does not know the object of the one or the message of the other"},
	{"internal/shared", nil, "a lock; it knows nothing of what it guards"},
	{"internal/target", nil, "addresses and the rule which of them are connected to; it does not know the objects that name them"},
	{"internal/traffic", nil, "counters; what they count is up to who has them"},
	{"internal/certchain", nil, "certificates in, a verified chain out; who sent them, and who pays, is up to the caller"},
	{"balancer", []string{"internal/certchain", "internal/bound", "internal/keyed", "internal/list", "internal/shared", "internal/target", "internal/traffic", "internal/wire/protocol"}, "the bottom of the request path: it must be usable by anything"},
	{"internal/ratelimit", []string{"internal/shared"}, "counters by address; it knows neither routes nor requests"},
	{"internal/opensslkey", nil, "signatures by libcrypto, in programs that are built so; it knows keys and no certificates"},
	{"routing", []string{"balancer", "internal/expression", "internal/share", "internal/keypair", "internal/ratelimit", "internal/traffic", "internal/opensslkey", "internal/wire/field", "tlsmux/clientcert"}, "a table is plain data and pools; it knows nobody who reads it"},
	{"routing/cors", []string{"internal/work", "internal/wire/field"}, "compiled into rules, applied by the pipeline: it works on fields and knows neither"},
	{"routing/header", []string{"internal/work", "internal/wire/field"}, "compiled into routes, applied by the pipeline: it works on fields and knows neither"},
	{"routing/redirect", []string{"internal/work", "internal/wire/field", "routing/rewrite"}, "compiled into rules, answered with by the pipeline: it works on paths and knows neither"},
	{"routing/rewrite", []string{"internal/work", "internal/wire/field"}, "compiled into routes, applied by the pipeline: it works on paths and knows neither"},
	{"internal/wire/field", []string{"internal/spare"}, "the vocabulary of codecs and pipeline; it has no side"},
	{"proxy/logformat", nil, "a language; what its variables mean is up to who uses it"},
	{"proxy/identity", []string{"internal/expression", "internal/wire/field"}, "what is said of a client is made from its certificate; it knows neither connections nor routes"},
	{"proxy/detached", []string{"internal/reactor"}, "a connection on its way from codec to codec; it does nothing with it"},
	{"proxy/register", nil, "a list; it knows nothing of what stands in it"},
	{"internal/wire/protocol", nil, "names of what is spoken; it knows nobody who speaks"},
	{"internal/wire/tracecontext", []string{"internal/wire/field"}, "a codec of a few fields; what becomes of a trace is the pipeline's business"},
	{"internal/wire/http1", []string{"internal/wire/field"}, "a codec is bytes in, events out; it has never heard of routes, pools or sockets"},
	{"proxy/h1", []string{"proxy", "internal/wire", "balancer", "internal/spare", "internal/bound", "internal/reactor"}, "a codec's halves join wire and pipeline; routes are the pipeline's business"},
	{"internal/wire/h2frame", []string{"internal/wire/field", "internal/wire/http1"}, "a codec; what it lets through must be sayable in HTTP/1.1, so it checks with that codec's tables"},
	{"internal/wire/framing", nil, "it counts bytes; it knows neither messages nor connections"},
	{"internal/wire/h2session", []string{"internal/wire/field", "internal/wire/framing", "internal/wire/h2frame"}, "a codec is bytes in, events out; it has never heard of routes, pools or sockets"},
	{"proxy/h2", []string{"proxy", "internal/wire", "balancer", "internal/list", "internal/spare", "internal/bound", "internal/reactor"}, "a codec's halves join wire and pipeline; routes are the pipeline's business"},
	{"proxy/upstream", []string{"proxy", "balancer", "internal/wire/protocol"}, "it chooses between protocols by what they can be asked, so that none of them knows another"},
	{"proxy/tunnel", []string{"internal/share", "proxy", "balancer", "routing", "internal/bound", "internal/reactor"}, "a tunnel copies between two connections"},
	{"proxy/datagram", []string{"internal/share", "proxy", "balancer", "routing", "internal/bound", "internal/list", "internal/reactor"}, "datagrams go to and fro between two sockets; who the endpoint is the pipeline decides"},
	{"proxy", []string{"internal/share", "internal/work", "balancer", "internal/bound", "internal/list", "internal/ratelimit", "internal/shared", "internal/spare", "internal/traffic", "routing", "internal/wire/field", "internal/wire/protocol", "internal/wire/tracecontext", "proxy/logformat", "proxy/detached"}, "the pipeline sees no wire format, no socket and no clock of its own, so that every protocol shares it"},
	{"tlsmux", []string{"internal/certchain", "internal/share", "balancer", "internal/bound", "internal/list", "routing", "internal/reactor", "internal/opensslkey", "internal/keypair", "internal/wire/protocol"}, "tlsmux and proxy do not know each other: TLS is not HTTP"},
	{"tlsmux/clientcert", []string{"internal/certchain", "internal/keypair", "internal/target"}, "which clients are trusted follows from certificates and lists; connections are tlsmux's"},
	{"controller", []string{"internal/certchain", "internal/expression", "internal/share", "balancer", "internal/bound", "internal/keyed", "internal/nearest", "internal/traffic", "internal/problem", "internal/ratelimit", "internal/keypair", "internal/target", "routing", "tlsmux/clientcert", "internal/wire/field", "internal/wire/protocol"}, "the control plane meets the data plane in the table and nowhere else"},
	{"controller/shard/zones", []string{"controller", "internal/dns/zone"}, "which names there are follows from objects; who answers is up to others"},
	{"controller/shard/naming", []string{"controller", "internal/dns/zone"}, "objects in, zones out; who answers is up to others"},
	{"internal/reactor/engine", nil, "what a loop needs to wait for sockets; it knows neither loops nor systems"},
	{"internal/reactor/memnet", []string{"internal/reactor/engine"}, "a network for tests; it must be usable by the reactor's own"},
	{"internal/reactor", []string{"internal/traffic", "internal/share"}, "the reactor moves bytes; it must not know whose, and divides pipes among owners that are names to it"},
	{"internal/accesslog", []string{"proxy", "balancer", "internal/wire/protocol", "internal/wire/tracecontext"}, "it writes the pipeline's records, and how busy a pool is beside them"},
	{"internal/tracing", []string{"internal/option", "proxy", "internal/wire/protocol", "internal/wire/tracecontext"}, "it makes spans of the pipeline's records; what is sampled was decided before"},
	{"internal/health", []string{"internal/share", "balancer", "internal/bound", "internal/keyed", "internal/reactor", "internal/wire/http1", "internal/wire/protocol"}, "it connects, asks and tells; who is chosen is the balancer's business"},
	{"internal/handover", nil, "it passes descriptors between processes; what they listen on is up to who asked"},
	{"internal/overload", nil, "it decides by the samples it is given; measuring and obeying are up to others"},
	{"internal/keypair", []string{"internal/opensslkey"}, "certificates and keys as they are written; it knows nobody who serves them"},
	{"internal/filewatch", nil, "it tells that a folder has changed; what that means is up to who asked"},
	{"internal/pulse", []string{"internal/bound", "internal/reactor"}, "it asks loops; what answers is up to who accepts"},
	{"internal/cgroup", nil, "limits as files say them; what follows from them is up to who asks"},
	{"internal/memory", []string{"internal/cgroup"}, "it knows the process and its control group, not what the memory is for"},
	{"internal/server", []string{"balancer", "routing", "proxy", "tlsmux", "internal/bound", "internal/cgroup", "internal/handover", "internal/health", "internal/memory", "internal/opensslkey", "internal/overload", "internal/problem", "internal/pulse", "internal/ratelimit", "internal/reactor", "internal/traffic", "internal/wire/http1", "internal/wire/protocol"}, "the request path, put together once; what feeds it and what shows it are other packages' business"},
	{"internal/follow", []string{"internal/filewatch", "internal/problem", "internal/target", "tlsmux"}, "it reads files; what they are good for is up to who asked"},
	{"internal/tickets", []string{"controller", "internal/follow", "internal/option"}, "options in, who follows the secrets out"},
	{"internal/option", []string{"internal/nearest"}, "how options are written; what they mean is up to the package with the table"},
	{"internal/option/kubectl", []string{"controller", "internal/option"}, "names of what the reader of clusters takes"},
	{"internal/option/admission", []string{"controller", "internal/option"}, "names of what the controller takes"},
	{"internal/option/ingresses", []string{"controller", "internal/option"}, "names of what the controller takes"},
	{"internal/dns/zone", nil, "zones as data, queries and answers as bytes; who asks and who changes them is up to others"},
	{"internal/dns/server", []string{"internal/bound", "internal/dns/zone"}, "sockets; what is answered is the zones'"},
	{"internal/dns/zonefile", []string{"internal/dns/zone"}, "zones as text; who reads it is up to others"},
	{"internal/signals", nil, "what ends a process; what it does until then is up to others"},
	{"internal/crew", nil, "goroutines; what they do is up to who starts them"},
	{"internal/logging", []string{"internal/accesslog", "internal/crew", "internal/option", "internal/problem", "internal/server", "internal/terminal", "proxy", "tlsmux"}, "where lines go; what they say is up to who logs"},
	{"internal/metrics", []string{"balancer", "routing", "proxy", "tlsmux", "internal"}, "it reads every package's counters, nobody reads it"},
	{"internal/live", []string{"controller", "internal/accesslog", "internal/follow", "internal/logging", "internal/option", "internal/problem", "internal/server", "internal/target", "tlsmux"}, "options in, what goes by them changed; how they are written and where they come from is up to others"},
	{"internal/offline", []string{"balancer", "routing", "controller", "internal/crew", "internal/option"}, "objects in, a table out; who asks what of it is up to others"},
	{"internal/togateway", []string{"controller", "internal/offline", "internal/option"}, "a command around the conversion: objects in, objects and a report out"},
	{"internal/explain", []string{"balancer", "routing", "proxy", "tlsmux", "controller", "internal"}, "it runs the packages of the request path and looks at what they decide; nobody there knows it"},
	{"internal/adminclient", nil, "it asks by HTTP; what it means is up to who asks"},
	{"internal/inspect", []string{"internal/adminclient", "internal/nearest", "internal/option", "internal/terminal", "internal/problem", "internal/view"}, "a client of the admin port; the types are those of the answers"},
	{"internal/view", []string{"balancer", "routing", "proxy", "controller", "internal"}, "it looks at what other packages have, for people; nobody there knows it"},
	{"internal/page", []string{"controller/shard/show", "internal/view"}, "files for browsers, and what a view makes as JSON"},
	{"internal/access", []string{"internal/admin", "internal/follow", "internal/option", "internal/problem", "tlsmux"}, "files in, a login and TLS out; what they guard is the admin port's business"},
	{"internal/admin", []string{"internal/bound"}, "what it shows is handed to it as functions"},
	{"internal/nameserver", []string{"controller", "internal"}, "a program of its own: options in, names of DNS out"},
	{"internal/elected", []string{"controller", "internal"}, "options, log and admin port around work that is given to it"},
	{"internal/gateways", []string{"controller", "internal/crew", "internal/option", "internal/server"}, "options in, ports and writers out; what Gateways mean is up to the controller"},
	{"internal/convert", []string{"controller", "internal/admin", "internal/elected", "internal/metrics", "internal/option"}, "a command around the converter"},
	{"internal/schedule", []string{"controller", "internal"}, "a program of its own: options in, a scheduler with an admin port"},
	{"internal/shards", []string{"controller", "internal/option"}, "what a cluster says, printed"},
	{"internal/demo", nil, "the demo is a client of the router's ports and files"},
	{"internal/testkit", []string{"balancer", "routing", "proxy", "tlsmux", "controller", "internal"}, "what tests of several packages share"},
	{"internal/archtest", nil, "it looks from outside"},
	{"deploy", nil, "files"},
	{"cmd", []string{"balancer", "routing", "proxy", "tlsmux", "controller", "internal", "deploy"}, "cmd wires everything"},
	{"bench", []string{"balancer", "routing", "proxy", "tlsmux", "controller", "internal", "cmd", "bench"}, "benchmarks measure everything"},
	{"test", []string{"balancer", "routing", "proxy", "tlsmux", "controller", "internal", "cmd", "test"}, "end-to-end tests use everything"},
}

// external says which packages may import a module from outside or a sharp package of
// the standard library.
var external = []struct {
	prefix string // of the import path
	trees  []string
	tests  []string // packages whose tests may as well
	reason string
}{
	{"k8s.io/", []string{"controller", "bench/shards", "test/kube", "test/cluster"}, []string{"bench", "test"}, "the data plane has never heard of Kubernetes; cmd and everybody else get plain data"},
	{"github.com/openshift/", []string{"controller", "test/kube"}, []string{"bench", "test"}, "Route objects end in the controller"},
	{"sigs.k8s.io/", []string{"controller", "internal/demo", "test/kube", "test/cluster", "test/gateway"}, []string{"bench", "test"}, "manifests are read by the controller; the demo reads its own examples"},
	{"github.com/prometheus/", []string{"internal/metrics", "test/kube", "test/cluster"}, nil, "packages keep plain counters; one package translates them"},
	{"github.com/valyala/fasthttp", []string{"internal/demo"}, []string{"internal/wire", "proxy/h1", "cmd", "test"}, "a toolkit and an oracle of tests; its header types lose the order of fields, so the request path does not use it"},
	{"github.com/klauspost/compress", []string{"proxy", "internal/metrics"}, []string{"."}, "answers are compressed by the pipeline and nowhere else, but for scrapes, which are of many megabytes"},
	{"go.uber.org/zap", []string{"cmd", "controller", "internal/follow", "internal/live", "internal/logging", "internal/elected", "internal/nameserver", "internal/signals"}, nil, "the data plane counts and returns errors; logging happens at its edges"},
	{"golang.org/x/net", []string{"tlsmux/clientcert", "bench"}, []string{"internal/wire", "proxy/h2", "internal/server", "cmd", "test"}, "of HTTP/2 it is the oracle in tests, and clients and pods of benchmarks; it knows what NO_PROXY means"},
	{"golang.org/x/sys", []string{"internal/reactor", "internal/memory", "internal/terminal", "internal/dns/server", "bench", "test/cluster"}, nil, "system calls are the reactor's, but for memory that is given back, terminals, sockets of DNS, and the namespaces of the test cluster"},
	{"go.opentelemetry.io/", []string{"internal/tracing", "internal/testkit/testotlp"}, nil, "the request path fills records; one package makes spans of them"},
	{"gonum.org/", []string{"bench/shards", "bench/report"}, nil, "pictures of documents; the program draws nothing"},
	{"cel.dev/", []string{"controller/shard/strategy/expression"}, nil, "expressions choose routers; requests are not matched by any"},
	{"github.com/miekg/dns", []string{"internal/dns", "test/cluster"}, []string{"internal/nameserver"}, "DNS is answered by its own packages; the request path asks no names"},
	{"github.com/go-logr/", []string{"internal/tracing"}, nil, "OpenTelemetry logs by it"},
	{"google.golang.org/grpc", []string{"internal/testkit/testotlp", "test/grpc", "test/cluster/internal/kubelet"}, nil, "gRPC is how a collector may be spoken to; requests of clients are the request path's own"},
	{"google.golang.org/protobuf", []string{"internal/metrics", "internal/testkit/testotlp", "test/grpc"}, nil, "scrapes and spans are Protocol Buffers; the request path speaks none"},
	{"github.com/chromedp/", nil, []string{"cmd"}, "a browser is what the page is tested with"},
	{"github.com/fsnotify/", []string{"controller", "internal/filewatch"}, nil, "folders of manifests are watched by their source, others by one package"},
	{"net/http", []string{"internal/metrics", "internal/admin", "internal/page", "internal/adminclient", "internal/explain", "internal/testkit/testhttp", "internal/testkit/testotlp", "tlsmux/clientcert", "controller/shard/strategy/webhook", "bench", "test/kube", "test/cluster"}, []string{"."}, "the request path is Turnout's own; net/http is for the admin side, for fetching revocation lists, for the webhook that chooses routers and for oracles"},
	{"flag", []string{"cmd", "internal/option", "bench", "test/cluster"}, []string{"."}, "the command line and the environment are read in cmd, which gives both to the table of options"},
	{"log", []string{"internal/admin", "test/cluster/internal/kubelet"}, nil, "logs are zap's JSON lines; net/http is given one that writes nothing"},
	{"log/slog", nil, nil, "logs are zap's JSON lines"},
	{"C", []string{"internal/opensslkey"}, nil, "without the tag openssl the program is pure Go, so that it is one static binary that builds everywhere"},
	{"reflect", []string{"controller", "cmd", "tlsmux"}, []string{"."}, "known facts are struct fields"},
	{"plugin", nil, nil, "cmd wires by hand"},
}

// pure packages do no input or output and have no time.
var pure = []struct {
	tree      string
	exact     bool // not what lies below
	forbidden []string
	reason    string
}{
	{"proxy", true, []string{"net", "net/http", "os", "syscall", "crypto/tls", "bufio", "context"}, "the pipeline sees no wire format, no socket and no clock of its own"},
	{"internal/wire/field", false, []string{"net", "os", "syscall", "time", "sync", "context", "io"}, "the vocabulary is data"},
	{"internal/wire/protocol", false, []string{"net", "os", "syscall", "time", "sync", "context", "io"}, "names of what is spoken"},
	{"internal/wire/tracecontext", false, []string{"net", "os", "syscall", "time", "sync", "context", "io"}, "codecs are pure"},
	{"internal/wire/http1", false, []string{"net", "os", "syscall", "time", "sync", "context", "bufio"}, "codecs are pure state machines: bytes in, events out"},
	{"internal/wire/h2frame", false, []string{"net", "os", "syscall", "time", "sync", "context", "bufio"}, "codecs are pure state machines: bytes in, events out"},
	{"internal/wire/h2session", false, []string{"net", "os", "syscall", "sync", "context", "bufio"}, "codecs are pure state machines: bytes in, events out"},
	{"routing", false, []string{"net", "os", "syscall", "net/http"}, "plain data in, immutable table out"},
	{"internal/keypair", true, []string{"net", "os", "syscall", "net/http"}, "text in, certificates and keys out"},
	{"internal/dns/zone", false, []string{"net", "os", "syscall", "context", "sync"}, "plain data in, immutable zones out; queries in, answers out"},
	{"internal/ratelimit", false, []string{"net", "os", "syscall"}, "counting is arithmetic"},
	{"balancer", false, []string{"net", "os", "syscall", "net/http"}, "who gets the request is arithmetic"},
	{"controller/admit", false, []string{"net", "os", "k8s.io/client-go"}, "admission is a pure function of the objects"},
	{"controller/translate", false, []string{"net", "os", "k8s.io/client-go"}, "translation is a pure function of the objects"},
	{"controller/ingress", true, []string{"net", "os", "k8s.io/client-go"}, "what an Ingress means follows from the objects alone"},
	{"controller/gateway", true, []string{"net", "os", "context", "sync", "k8s.io/client-go"}, "what objects of the Gateway API mean, and their status, follows from the objects alone"},
	{"controller/ingress/convert", false, []string{"net", "os", "k8s.io/client-go"}, "what a conversion does follows from the objects alone"},
	{"controller/shard/zones", false, []string{"net", "os", "syscall", "context", "sync", "k8s.io/client-go"}, "which names there are follows from objects"},
	{"controller/shard", true, []string{"net", "net/http", "os", "syscall", "context", "sync", "k8s.io/client-go"}, "who serves a route is decided by objects and a time that are given"},
}

// roomOf returns the most specific entry of direction for pkg, -1 without one.
func roomOf(pkg string) int {
	best := -1
	for i, d := range direction {
		if within(pkg, d.tree) && (best < 0 || len(d.tree) > len(direction[best].tree)) {
			best = i
		}
	}
	return best
}

func TestImportDirection(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		i := roomOf(f.pkg)
		if i < 0 {
			t.Errorf("%s: package %s has no place; give it a place in the list of directions", f.path, f.pkg)
			continue
		}
		for _, imported := range f.imports {
			target, ok := strings.CutPrefix(imported, "turnout/")
			if !ok || within(target, direction[i].tree) || withinAny(target, direction[i].may) {
				continue
			}
			t.Errorf("%s imports %s, which %s may not: %s", f.path, imported, direction[i].tree, direction[i].reason)
		}
	}
}

// TestPackagesExist: the lists speak of nothing that is gone.
func TestPackagesExist(t *testing.T) {
	files := theModule(t).files
	want := func(tree string) {
		if tree != "." && !slices.ContainsFunc(files, func(f source) bool { return within(f.pkg, tree) }) {
			t.Errorf("there is no %s", tree)
		}
	}
	for _, d := range direction {
		want(d.tree)
		for _, tree := range d.may {
			want(tree)
		}
	}
	for _, e := range external {
		for _, tree := range append(slices.Clip(e.trees), e.tests...) {
			want(tree)
		}
	}
	for _, p := range pure {
		want(p.tree)
	}
}

func TestPackagesDoNotKnowThoseAbove(t *testing.T) {
	// A package that is split in two, such as proxy and proxy/h1, could import upwards
	// within itself.
	for _, f := range theModule(t).files {
		if f.pkg == "proxy" && !f.test && slices.ContainsFunc(f.imports, func(p string) bool { return strings.HasPrefix(p, "turnout/proxy/h") || p == "turnout/proxy/tunnel" }) {
			t.Errorf("%s imports a codec: the pipeline sees no wire format", f.path)
		}
	}
}

func TestExternalImports(t *testing.T) {
	for _, f := range theModule(t).files {
		for _, imported := range f.imports {
			for _, e := range external {
				if !matches(imported, e.prefix) || withinAny(f.pkg, e.trees) {
					continue
				}
				if f.test && (withinAny(f.pkg, e.tests) || slices.Contains(e.tests, ".") || withinAny(f.pkg, e.trees)) {
					continue
				}
				if excused(t, "import", f.path+" "+imported) {
					continue
				}
				t.Errorf("%s imports %s: %s (allowed in %v)", f.path, imported, e.reason, e.trees)
			}
		}
	}
}

// matches: a prefix that ends with a slash covers what is below, others are exact
// or a path prefix, and standard packages are exact.
func matches(imported, prefix string) bool {
	switch {
	case strings.HasSuffix(prefix, "/"):
		return strings.HasPrefix(imported, prefix)
	case strings.Contains(prefix, "."):
		return within(imported, prefix)
	}
	return imported == prefix
}

func TestPurePackages(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		for _, p := range pure {
			if f.pkg != p.tree && (p.exact || !within(f.pkg, p.tree)) {
				continue
			}
			for _, imported := range f.imports {
				if slices.ContainsFunc(p.forbidden, func(x string) bool { return matches(imported, x) }) && !excused(t, "pure", f.path+" "+imported) {
					t.Errorf("%s imports %s: %s", f.path, imported, p.reason)
				}
			}
		}
	}
}

// calls are functions that only some packages may call.
var calls = []struct {
	pkg    string // import path
	names  []string
	trees  []string // that may
	only   []string // if not empty, the rule is for these packages alone, without those below
	reason string
}{
	{"os", []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv"}, []string{"cmd", "bench", "test/kube", "test/cluster"}, nil, "the environment is read in cmd only"},
	{"os", []string{"Exit"}, []string{"cmd", "bench", "deploy/rootfs", "deploy/standin", "test/kube", "test/cluster"}, nil, "only main ends the process"},
	{"time", []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, nil,
		[]string{"proxy", "internal/wire/field", "internal/wire/http1", "internal/wire/h2frame", "internal/wire/h2session", "routing", "balancer", "internal/ratelimit", "internal/overload", "controller/admit", "controller/translate", "controller/shard", "controller/shard/sim"}, "time comes in as an argument or a Clock, so that tests run in virtual time"},
}

func TestCalls(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, c := range calls {
				if id.Name != c.pkg || !slices.Contains(f.imports, c.pkg) || !slices.Contains(c.names, sel.Sel.Name) || withinAny(f.pkg, c.trees) {
					continue
				}
				if len(c.only) > 0 && !slices.Contains(c.only, f.pkg) {
					continue
				}
				if !excused(t, "call", f.path+" "+c.pkg+"."+sel.Sel.Name) {
					t.Errorf("%s: %s.%s: %s", m.at(sel), c.pkg, sel.Sel.Name, c.reason)
				}
			}
			return true
		})
	}
}
