package translate

import (
	"fmt"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

// The annotations of a route that are about headers and paths.
const (
	annotationRewrite    = "haproxy.router.openshift.io/rewrite-target"
	annotationAdjustCase = "haproxy.router.openshift.io/h1-adjust-case"
)

// maxActions is how many actions a list of a route may have.
const maxActions = 20

// compiled keeps what was compiled from texts, so that equal texts give equal
// pointers: a route that is translated again is the same route.
type compiled struct {
	actions   interned[*header.Actions]
	rewrites  interned[*rewrite.Rule]
	redirects interned[*redirect.Rule]
	cors      interned[*cors.Rule]
	retries   interned[*routing.RetrySpec]
}

// compile compiles a list of which every action is known to compile.
func (c *compiled) compile(side header.Side, list []header.Action) *header.Actions {
	var key strings.Builder
	fmt.Fprintf(&key, "%d", side)
	for _, a := range list {
		fmt.Fprintf(&key, " %t %d %s %d %s", a.Delete, len(a.Name), a.Name, len(a.Value), a.Value)
	}
	if known, ok := c.actions.get(key.String()); ok {
		return known
	}
	made, _ := header.Compile(side, list)
	c.actions.put(key.String(), made)
	return made
}

// rewrite compiles a target for what a path matches, "" = the path stays, and the host that endpoints get, "" = that of the request.
func (c *compiled) rewrite(path, target, host string) *rewrite.Rule {
	if target == "" && host == "" {
		return nil
	}
	if target == "" {
		path = "" // has no part in it
	}
	return c.rewrites.of(fmt.Sprintf("%d %s%d %s%s", len(path), path, len(target), target, host), func() (*rewrite.Rule, error) {
		var made *rewrite.Rule
		if target != "" {
			made = rewrite.Compile(path, target)
		}
		if host == "" {
			return made, nil
		}
		return rewrite.WithHost(made, host)
	})
}

// headers adds header actions, the path rewrite and the case of names to p.
func (a *annotations) headers(c *compiled, r *routev1.Route, p *routing.Policy, term routing.Termination) {
	if term == routing.TermPassthrough {
		a.unused("passthrough", annotationRewrite, annotationAdjustCase)
		a.unused("passthrough", corsKeys...)
		a.unused("passthrough", patienceKeys...)
		a.unused("passthrough", elsewhereKeys...)
		if h := r.Spec.HTTPHeaders; h != nil && len(h.Actions.Request)+len(h.Actions.Response) > 0 {
			a.notes = append(a.notes, "spec.httpHeaders: has no effect on passthrough routes")
		}
		return
	}
	p.AdjustCase = a.bool(annotationAdjustCase)
	target := a.values[annotationRewrite]
	if target != "" && !rewrite.IsTarget(target) {
		a.invalid(annotationRewrite, target, `does not begin with "/", has a newline, or is longer than 4096 bytes`, "the path as it comes")
		target = ""
	}
	p.Rewrite = c.rewrite(r.Spec.Path, target, a.upstreamHost())
	a.cors(c, p)
	a.patience(c, p)
	a.redirect(c, p)
	if h := r.Spec.HTTPHeaders; h != nil {
		p.RequestActions = a.actions(c, header.Request, "spec.httpHeaders.actions.request", h.Actions.Request)
		p.ResponseActions = a.actions(c, header.Response, "spec.httpHeaders.actions.response", h.Actions.Response)
	}
}

// actions compiles one list of a route. What the API does not allow is left out and
// noted.
func (a *annotations) actions(c *compiled, side header.Side, place string, list []routev1.RouteHTTPHeader) *header.Actions {
	note := func(i int, format string, args ...any) {
		a.notes = append(a.notes, fmt.Sprintf("%s[%d] has no effect: %s", place, i, fmt.Sprintf(format, args...)))
	}
	var kept []header.Action
	beyond := false
	seen := make(map[string]bool)
	for i, entry := range list {
		action, problem := actionOf(&entry)
		switch {
		case len(kept) == maxActions:
			if !beyond {
				note(i, "a list has at most %d actions", maxActions)
			}
			beyond = true
			continue
		case problem == "" && seen[entry.Name]:
			problem = "header " + entry.Name + " is in the list already"
		}
		if problem != "" {
			note(i, "%s", problem)
			continue
		}
		if _, errs := header.Compile(side, []header.Action{action}); len(errs) > 0 {
			note(i, "%v", errs[0])
			continue
		}
		seen[entry.Name] = true
		kept = append(kept, action)
	}
	if len(kept) == 0 {
		return nil
	}
	return c.compile(side, kept)
}

// actionOf reads one entry; problem says why it cannot be used.
func actionOf(entry *routev1.RouteHTTPHeader) (action header.Action, problem string) {
	switch strings.ToLower(entry.Name) {
	case "strict-transport-security", "proxy", "cookie", "set-cookie":
		return action, "header " + entry.Name + " may not be changed by a route"
	}
	if len(entry.Name) > 255 {
		return action, "the name is longer than 255 bytes"
	}
	action.Name = entry.Name
	switch entry.Action.Type {
	case routev1.Delete:
		action.Delete = true
	case routev1.Set:
		if entry.Action.Set == nil {
			return action, "header " + entry.Name + ": a set without a value"
		}
		action.Value = entry.Action.Set.Value
	default:
		return action, fmt.Sprintf("header %s: action %q is not Set or Delete", entry.Name, Shown(string(entry.Action.Type)))
	}
	return action, ""
}
