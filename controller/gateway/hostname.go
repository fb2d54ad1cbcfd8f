package gateway

import (
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// anyHost stands for all host names where one is expected.
const anyHost = "*"

// hostname returns a host name in lower case; "" = any.
func hostname[T ~string](name *T) string {
	if name == nil {
		return ""
	}
	return strings.ToLower(string(*name))
}

// covers reports whether a host name, "*.example.com" or a name, covers another one: all names that the other stands for are among its own.
// "*" spans labels, at least one.
func covers(pattern, name string) bool {
	if pattern == name {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && len(name) > len(suffix) && strings.HasSuffix(name, suffix) && strings.HasPrefix(suffix, ".")
}

// intersection returns the host names that a listener, "" for any, and a route have in common, each once; anyHost for all, nothing if there is none.
func intersection(listener string, route []gatewayv1.Hostname) []string {
	if len(route) == 0 {
		if listener == "" {
			return []string{anyHost}
		}
		return []string{listener}
	}
	names := make([]string, 0, len(route))
	seen := make(map[string]struct{}, len(route))
	for i := range route {
		name := hostname(&route[i])
		switch {
		case name == "":
			name = listener
			if name == "" {
				name = anyHost
			}
		case listener == "" || covers(listener, name):
		case covers(name, listener):
			name = listener
		default:
			continue
		}
		if _, twice := seen[name]; !twice {
			seen[name] = struct{}{}
			names = append(names, name)
		}
	}
	return names
}
