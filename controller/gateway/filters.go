package gateway

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/translate"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// filters are those of a rule or of a backend, each kind once but mirrors.
type filters struct {
	request  *header.Actions
	answer   *header.Actions
	redirect *gatewayv1.HTTPRequestRedirectFilter
	rewrite  *gatewayv1.HTTPURLRewriteFilter
	cors     *cors.Rule
	mirrors  []*gatewayv1.HTTPRequestMirrorFilter
}

// filtersOf compiles filters as far as that does not depend on the match and the listener.
func (j *Judge) filtersOf(list []gatewayv1.HTTPRouteFilter) (filters, *translate.Error) {
	var out filters
	var wrong *translate.Error
	var seen []gatewayv1.HTTPRouteFilterType
	for i := range list {
		f := &list[i]
		if f.Type != gatewayv1.HTTPRouteFilterRequestMirror && slices.Contains(seen, f.Type) {
			return out, &translate.Error{Incompatible: true, Message: fmt.Sprintf("filter %s stands there twice", f.Type)}
		}
		seen = append(seen, f.Type)
		empty := false
		switch f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
			empty = f.RequestHeaderModifier == nil
			out.request, wrong = j.compiler.Headers(header.Request, f.RequestHeaderModifier)
		case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
			empty = f.ResponseHeaderModifier == nil
			out.answer, wrong = j.compiler.Headers(header.Response, f.ResponseHeaderModifier)
		case gatewayv1.HTTPRouteFilterRequestRedirect:
			out.redirect, empty = f.RequestRedirect, f.RequestRedirect == nil
		case gatewayv1.HTTPRouteFilterURLRewrite:
			out.rewrite, empty = f.URLRewrite, f.URLRewrite == nil
		case gatewayv1.HTTPRouteFilterRequestMirror:
			if empty = f.RequestMirror == nil; !empty {
				out.mirrors = append(out.mirrors, f.RequestMirror)
			}
		case gatewayv1.HTTPRouteFilterCORS:
			if empty = f.CORS == nil; !empty {
				out.cors, wrong = j.compiler.CORS(f.CORS)
			}
		default:
			wrong = &translate.Error{Message: fmt.Sprintf("filter %s is not supported", f.Type)}
		}
		if empty {
			wrong = &translate.Error{Message: fmt.Sprintf("filter %s says nothing", f.Type)}
		}
		if wrong != nil {
			return out, wrong
		}
	}
	if out.redirect != nil && out.rewrite != nil {
		return out, &translate.Error{Incompatible: true, Message: "a rule with a redirect has no URL rewrite"}
	}
	return out, nil
}

// ofBackend compiles the filters of a backend: those that modify headers.
func (j *Judge) ofBackend(list []gatewayv1.HTTPRouteFilter) (filters, *translate.Error) {
	out, wrong := j.filtersOf(list)
	if wrong == nil && (out.redirect != nil || out.rewrite != nil || out.cors != nil || len(out.mirrors) > 0) {
		wrong = &translate.Error{Message: "of the filters only RequestHeaderModifier and ResponseHeaderModifier are supported on a backend"}
	}
	return out, wrong
}
