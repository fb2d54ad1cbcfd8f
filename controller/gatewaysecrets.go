package controller

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// hideHeaders replaces the values of headers that carry secrets.
func hideHeaders(f *gatewayv1.HTTPHeaderFilter) {
	if f == nil {
		return
	}
	for _, list := range [][]gatewayv1.HTTPHeader{f.Set, f.Add} {
		for i := range list {
			if secretName(string(list[i].Name)) {
				list[i].Value = redacted
			}
		}
	}
}

// secretName reports that the values of fields of a name are secrets.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) })
}

// withoutFilterSecrets is a spec without the values that filters give, and matches ask, of headers that carry secrets.
func withoutFilterSecrets(spec *gatewayv1.HTTPRouteSpec) *gatewayv1.HTTPRouteSpec {
	out := spec.DeepCopy()
	hide := func(filters []gatewayv1.HTTPRouteFilter) {
		for i := range filters {
			hideHeaders(filters[i].RequestHeaderModifier)
			hideHeaders(filters[i].ResponseHeaderModifier)
		}
	}
	for i := range out.Rules {
		rule := &out.Rules[i]
		hide(rule.Filters)
		for b := range rule.BackendRefs {
			hide(rule.BackendRefs[b].Filters)
		}
		for m := range rule.Matches {
			for h := range rule.Matches[m].Headers {
				if one := &rule.Matches[m].Headers[h]; secretName(string(one.Name)) {
					one.Value = redacted
				}
			}
			for q := range rule.Matches[m].QueryParams {
				if one := &rule.Matches[m].QueryParams[q]; secretName(string(one.Name)) {
					one.Value = redacted
				}
			}
		}
	}
	return out
}

// withoutGRPCSecrets is withoutFilterSecrets for a GRPCRoute.
func withoutGRPCSecrets(spec *gatewayv1.GRPCRouteSpec) *gatewayv1.GRPCRouteSpec {
	out := spec.DeepCopy()
	hide := func(filters []gatewayv1.GRPCRouteFilter) {
		for i := range filters {
			hideHeaders(filters[i].RequestHeaderModifier)
			hideHeaders(filters[i].ResponseHeaderModifier)
		}
	}
	for i := range out.Rules {
		rule := &out.Rules[i]
		hide(rule.Filters)
		for b := range rule.BackendRefs {
			hide(rule.BackendRefs[b].Filters)
		}
		for m := range rule.Matches {
			for h := range rule.Matches[m].Headers {
				if one := &rule.Matches[m].Headers[h]; secretName(string(one.Name)) {
					one.Value = redacted
				}
			}
		}
	}
	return out
}
