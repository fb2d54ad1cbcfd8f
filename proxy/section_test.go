package proxy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/routing"
	"turnout/routing/header"
)

// TestOnlyThePolicyMakesSections checks that other packages cannot make a Section that is not
// empty, and that only the listed functions of this package do.
func TestOnlyThePolicyMakesSections(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var makers []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if ok && fmt.Sprint(lit.Type) == "Section" && len(lit.Elts) > 0 {
					makers = append(makers, fn.Name.Name)
				}
				return true
			})
		}
	}
	slices.Sort(makers)
	if got := strings.Join(makers, " "); got != "Refusal requestTrailers responsePolicy" {
		t.Errorf("sections are made by %s", got)
	}
}

// informational presents an interim response and reports whether it was taken.
func (r *rig) informational(status int, fields ...string) bool {
	h := &Head{Status: status, Minor: 1, Fields: fieldLines(fields...)}
	if r.ex.Holds(h) {
		return false
	}
	r.ex.ResponseInformational(h)
	return true
}

// TestInterimResponsesWaitForTheClient checks that the endpoint is paused in any attempt while the
// client does not take its output. Interim responses are neither queued nor lost; 100 (Continue) is
// sent without fields.
func TestInterimResponsesWaitForTheClient(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.ask("GET /")
	r.want("acquire a, up1 head GET / end")
	if !r.informational(103, "link: x") {
		t.Error("a 103 was not taken although the client reads")
	}
	r.want("down 103")
	r.unread = true
	for range 2 {
		if r.informational(103, "link: x") {
			t.Error("a 103 was taken although the client does not read")
		}
	}
	r.want("up1 pause")
	if !r.informational(100, "x-a: b") || len(r.interim.Fields) != 0 {
		t.Errorf("100 was not taken, or has fields: %+v", r.interim)
	}
	r.want("down 100")
	r.pooled = false
	r.ex.UpstreamFault(FaultStale) // another attempt, while the client still does not read
	r.want("acquire a fresh")
	r.ready()
	r.want("up2 head GET / end, up2 pause")
	r.unread = false
	r.ex.DownstreamDrained()
	r.want("up2 resume")
	if !r.informational(103, "link: x") {
		t.Error("a 103 was not taken after the client had read")
	}
	r.answer(200, true)
	r.want("down 103, down head 200 end")
	r.ended(ReasonOK, 200)
}

// TestUnreadInterimResponsesEndInTime checks that a client that takes no interim response has the
// same timeout as for a final response.
func TestUnreadInterimResponsesEndInTime(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Policy.ServerTimeout = 1 << 40 })
	r.pooled, r.unread = true, true
	r.ask("GET /")
	r.informational(103, "link: x")
	r.heard()
	r.taken, r.left = 0, 1
	r.clock.advance(DefaultTimeouts().Client * 2)
	r.want("up1 abort canceled, down abort stalled")
	r.ended(ReasonClientTimeout, 0)
}

// TestInterimResponsesHaveAShare checks that interim responses beyond maxInterimBytes are dropped
// and counted.
func TestInterimResponsesHaveAShare(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.ask("GET /")
	r.heard()
	link := "link: " + strings.Repeat("x", 20<<10)
	for range 10 {
		if !r.informational(103, link) {
			t.Fatal("not taken")
		}
	}
	r.want("down 103, down 103, down 103")
	if n := r.bounds.Of(bound.InterimResponses); n != 7 {
		t.Errorf("%d were counted", n)
	}
	r.informational(100, link)
	r.want("down 100")
	if len(r.interim.Fields) != 0 {
		t.Error("100 has fields")
	}
	r.answer(200, true)
	r.want("down head 200 end")
	r.ended(ReasonOK, 200)
}

// TestSectionsThatCostTooMuch checks header actions that exceed the work of an exchange for an
// interim response or trailers. The client does not get that section, and an interim response
// leaves work for the final one.
func TestSectionsThatCostTooMuch(t *testing.T) {
	var list []header.Action
	for i := range 2400 {
		list = append(list, header.Action{Name: fmt.Sprintf("x-%d", i), Delete: true})
	}
	actions, errs := header.Compile(header.Response, list)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	many := func() (fields []string) {
		for i := range 100 {
			fields = append(fields, fmt.Sprintf("y-%d: 1", i))
		}
		return fields
	}
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Policy.ResponseActions = actions })
	r.pooled = true
	r.ask("GET /")
	r.heard()
	r.informational(103, "link: x")
	r.want("down 103")
	r.informational(103, many()...)
	r.want("")
	if n := r.bounds.Of(bound.MatchWork); n != 1 {
		t.Errorf("%d were counted", n)
	}
	r.answer(200, false, "x-1: y")
	r.ex.ResponseEnd(fieldLines(many()...))
	r.want("down head 200, up1 abort canceled, down abort internal")
	r.ended(ReasonMatchWork, 200)
}

// TestAuthenticationStandsInHeads checks that credentials and challenges pass in heads only, where
// the codecs look for them.
func TestAuthenticationStandsInHeads(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.ask("GET /")
	about := []string{
		"authorization: NTLM x", "proxy-authorization: NTLM x", "www-authenticate: NTLM", "proxy-authenticate: NTLM",
		"persistent-auth: true", "authentication-info: x",
	}
	request := r.ex.requestTrailers(fieldLines(about...)).Fields()
	if len(request) != 1 || string(request[0].Name) != "authentication-info" {
		t.Errorf("trailers of the request: %q", request)
	}
	tail, failed := r.ex.responseTrailers(fieldLines(about...))
	if got := tail.Fields(); failed != ReasonOK || len(got) != 1 || string(got[0].Name) != "authentication-info" {
		t.Errorf("trailers of the response: %q, %v", got, failed)
	}
	r.informational(103, about...)
	if got := r.interim.Fields; len(got) != 1 {
		t.Errorf("an interim response: %q", got)
	}
	r.answer(200, true)
	r.heard()
	r.ended(ReasonOK, 200)
}
