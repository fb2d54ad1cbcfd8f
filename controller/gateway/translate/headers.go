package translate

import (
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/internal/expression"
	"turnout/routing/header"
)

// Compiler makes what rules share. The zero value is ready. It belongs to one goroutine.
type Compiler struct {
	actions   Interned[header.Actions]
	rewrites  Interned[rewriteRule]
	redirects Interned[redirectRule]
	cors      Interned[corsRule]
	retries   Interned[retrySpec]

	expressions Interned[expression.Expression]
}

// Headers compiles a header modifier; nil = nothing is to be done.
func (c *Compiler) Headers(side header.Side, f *gatewayv1.HTTPHeaderFilter) (*header.Actions, *Error) {
	if f == nil {
		return nil, nil
	}
	var list []header.Action
	for _, h := range f.Set {
		list = append(list, header.Action{Name: string(h.Name), Value: literal(h.Value)})
	}
	for _, h := range f.Add {
		list = append(list, header.Action{Name: string(h.Name), Value: literal(h.Value), Add: true})
	}
	for _, name := range f.Remove {
		list = append(list, header.Action{Name: name, Delete: true})
	}
	if len(list) == 0 {
		return nil, nil
	}
	made, err := c.actions.Of(fmt.Sprintf("%d %#v", side, list), func() (*header.Actions, error) {
		actions, errs := header.Compile(side, list)
		if len(errs) > 0 {
			return nil, errs[0]
		}
		return actions, nil
	})
	if err != nil {
		return nil, unsupportedf("header modifier: %v", err)
	}
	return made, nil
}

// literal is a value as header.Action has it: there "%" begins an expression.
func literal(text string) string { return strings.ReplaceAll(text, "%", "%%") }
