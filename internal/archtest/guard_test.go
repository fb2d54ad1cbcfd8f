package archtest

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// connects lists the files that open connections, and the reason why a tenant cannot choose the
// destination there without internal/target.
var connects = []struct{ path, reason string }{
	{"proxy/h1/pools.go", "endpoint"},
	{"proxy/h2/choice.go", "endpoint"},
	{"proxy/tunnel/passthrough.go", "endpoint"},
	{"proxy/datagram/session.go", "endpoint"},
	{"internal/health/checker.go", "endpoint"},
	{"tlsmux/clientcert/download.go", "target.Guard"},
	{"controller/shard/strategy/webhook/webhook.go", "target.Guard"},
	{"internal/accesslog/syslog.go", "an option names the server"},
	{"internal/admin/readyurl.go", "an option names the URL"},
	{"internal/adminclient/client.go", "a command of the administrator"},
	{"internal/handover/predecessor.go", "a socket of the file system, named by an option"},
	{"internal/handover/server.go", "a socket of the file system, named by an option"},
	{"internal/dns/server/notify.go", "an option names the secondaries"},
	{"internal/pulse/pulse.go", "the router itself"},
}

// TestConnectsAreJudged checks every file that opens connections. The destination is a
// balancer.Endpoint, which only internal/target can admit, or a target.Guard checks it, or a tenant
// cannot choose it.
func TestConnectsAreJudged(t *testing.T) {
	used := map[string]bool{}
	for f := range theModule(t).production {
		if slices.ContainsFunc([]string{"internal/reactor", "internal/testkit", "bench", "test", "internal/demo", "deploy"}, func(tree string) bool { return within(f.pkg, tree) }) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Dial") && s.Sel.Name != "Dialled" && len(n.Args) > 1 {
					what = s.Sel.Name
				}
			case *ast.CompositeLit:
				if s, ok := n.Type.(*ast.SelectorExpr); ok && (s.Sel.Name == "Dialer" || s.Sel.Name == "Transport" || s.Sel.Name == "Client") {
					if p, ok := s.X.(*ast.Ident); ok && (p.Name == "net" || p.Name == "http") {
						what = p.Name + "." + s.Sel.Name
					}
				}
			}
			if what == "" {
				return true
			}
			i := slices.IndexFunc(connects, func(c struct{ path, reason string }) bool { return c.path == f.path })
			if i < 0 {
				t.Errorf("%s opens a connection by %s: say in connects who judges its destination", f.path, what)
				return true
			}
			used[f.path] = true
			if call, ok := n.(*ast.CallExpr); ok && connects[i].reason == "endpoint" && !strings.HasSuffix(types.ExprString(call.Args[0]), ".Addr()") {
				t.Errorf("%s connects to %s, which is not the address of an endpoint", f.path, types.ExprString(call.Args[0]))
			}
			return true
		})
		if i := slices.IndexFunc(connects, func(c struct{ path, reason string }) bool { return c.path == f.path }); i >= 0 && connects[i].reason == "target.Guard" &&
			!slices.Contains(f.imports, "turnout/internal/target") {
			t.Errorf("%s has no guard", f.path)
		}
	}
	for _, c := range connects {
		if !used[c.path] {
			t.Errorf("%s opens no connection: take it out of connects", c.path)
		}
	}
}

// TestAddressesHaveOneConstructor checks that the types that prove an admission have no exported
// field, so that only their package makes them. It also checks that specs of tables hold these
// types instead of plain addresses.
func TestAddressesHaveOneConstructor(t *testing.T) {
	sealed := map[string][]string{"internal/target": {"Addr", "Host", "Policy"}, "internal/wire/field": {"CarriedName"}, "routing/header": {"Actions"}}
	for f := range theModule(t).production {
		eachStruct(f.syntax, func(name string, s *ast.StructType) {
			for _, field := range s.Fields.List {
				kind := types.ExprString(field.Type)
				for _, id := range field.Names {
					switch {
					case slices.Contains(sealed[f.pkg], name) && id.IsExported():
						t.Errorf("%s: %s.%s is exported: anybody could make one", f.path, name, id.Name)
					case f.pkg == "balancer" && name == "Target" && strings.Contains(kind, "netip"):
						t.Errorf("%s: %s.%s is %s, not a target.Addr", f.path, name, id.Name, kind)
					case (f.pkg == "routing" || f.pkg == "proxy") && strings.Contains(id.Name, "Header") && strings.Contains(kind, "string") && !excused(t, "name", f.path+" "+name+"."+id.Name):
						t.Errorf("%s: %s.%s is %s: a field name that is chosen is a field.CarriedName or part of header.Actions", f.path, name, id.Name, kind)
					}
				}
			}
		})
	}
}

// eachStruct calls yield with each struct type of a file.
func eachStruct(file *ast.File, yield func(name string, s *ast.StructType)) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				yield(spec.Name.Name, s)
			}
		}
		return true
	})
}
