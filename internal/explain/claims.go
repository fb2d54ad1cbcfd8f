package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"turnout/controller"
	"turnout/controller/source"
)

// elsewherePatience is how long routes of other routers are waited for.
const elsewherePatience = 2 * time.Second

// Claims are Config.Claimants: those of a controller, and those of ofHost that it never sees. ofHost reads the routes of a host, selected or not; nil =
// no route is left out.
func Claims(control *controller.Controller, ofHost func(ctx context.Context, host string) ([]source.Event, error)) func(host string) []Claimant {
	return func(host string) []Claimant {
		list := control.Claimants(host)
		if ofHost == nil {
			return claimants(list)
		}
		ctx, cancel := context.WithTimeout(context.Background(), elsewherePatience)
		defer cancel()
		events, err := ofHost(ctx, host)
		if err != nil {
			return claimants(list) // what else there may be is not known
		}
		for _, e := range events {
			if !slices.ContainsFunc(list, func(c controller.Claimant) bool { return c.Namespace == e.Key.Namespace && c.Name == e.Key.Name }) {
				why := cmp.Or(controller.Elsewhere(&e), "it is not one that this router selects: see --router, --labels, --fields, --namespace and --namespace-labels")
				list = append(list, controller.ClaimantOf(e, controller.ClaimOtherShard, why))
			}
		}
		return claimants(list)
	}
}

// claimants are those of the controller as explanations have them.
func claimants(list []controller.Claimant) []Claimant {
	reasons := map[controller.ClaimState]string{
		controller.ClaimOlder: ReasonOlderClaim, controller.ClaimRejected: ReasonRejected, controller.ClaimWaiting: ReasonWaiting,
		controller.ClaimNotSelected: ReasonNotSelected, controller.ClaimOtherShard: ReasonOtherShard, controller.ClaimUnbound: ReasonOtherShard,
	}
	all := make([]Claimant, len(list))
	for i, c := range list {
		all[i] = Claimant{Notes: c.Notes, Candidate: Candidate{
			Namespace: c.Namespace, Name: c.Name, Host: c.Host, Path: c.Path, Wildcard: c.Wildcard, Termination: c.Termination, Origin: c.Origin,
			Reason: reasons[c.State], Text: c.Message,
		}}
		if !c.Created.IsZero() {
			all[i].Created = &c.Created
		}
	}
	return all
}

// Settings are Config.Settings of a controller.
func Settings(control *controller.Controller) func(namespace, name string) []controller.Setting {
	return func(namespace, name string) []controller.Setting {
		report, ok := control.Explain(namespace, name)
		if !ok {
			return nil
		}
		return report.Settings
	}
}

// Changes is HandlerConfig.Change of a controller. ofHost is that of Claims.
func Changes(control *controller.Controller, ofHost func(ctx context.Context, host string) ([]source.Event, error)) Change {
	return func(ctx context.Context, manifest []byte) (*World, error) {
		next, table, err := control.Preview(ctx, manifest)
		if err != nil {
			return nil, err
		}
		return &World{Table: table, Claimants: Claims(next, ofHost), Settings: Settings(next)}, nil
	}
}
