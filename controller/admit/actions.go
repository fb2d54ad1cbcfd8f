package admit

import (
	"errors"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/routing/header"
)

// HeaderActions refuses a route with a header action that would cost every request too much. Without that action the route
// would do something else than it says, so it is not served at all; what an action has else, such as a misspelt name, is
// noted when the route is translated.
func HeaderActions(r *routev1.Route) Verdict {
	h := r.Spec.HTTPHeaders
	if h == nil || r.Spec.TLS != nil && r.Spec.TLS.Termination == routev1.TLSTerminationPassthrough {
		return Verdict{Admitted: true}
	}
	for _, list := range []struct {
		place   string
		side    header.Side
		entries []routev1.RouteHTTPHeader
	}{
		{"request", header.Request, h.Actions.Request},
		{"response", header.Response, h.Actions.Response},
	} {
		for i := range list.entries {
			entry := &list.entries[i]
			if entry.Action.Set == nil {
				continue
			}
			_, errs := header.Compile(list.side, []header.Action{{Name: entry.Name, Value: entry.Action.Set.Value}})
			if len(errs) > 0 && errors.Is(errs[0], header.ErrCostly) {
				return rejected(ReasonHeaderActions, fmt.Sprintf("spec.httpHeaders.actions.%s[%d]: %v", list.place, i, errs[0]))
			}
		}
	}
	return Verdict{Admitted: true}
}
