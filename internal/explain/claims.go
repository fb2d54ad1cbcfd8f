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
			return claimantsOf(list, nil)
		}
		ctx, cancel := context.WithTimeout(context.Background(), elsewherePatience)
		defer cancel()
		events, err := ofHost(ctx, host)
		if err != nil {
			return claimantsOf(list, nil) // what else there may be is not known
		}
		chains := controller.NameChains(events)
		for _, e := range events {
			if e.Kind != source.Route {
				continue
			}
			i := slices.IndexFunc(list, func(c controller.Claimant) bool { return c.Namespace == e.Key.Namespace && c.Name == e.Key.Name })
			switch {
			case i < 0:
				list = append(list, elsewhere(&e, host, chains[e.Key]))
			case list[i].State == controller.ClaimUnbound:
				list[i] = elsewhere(&e, host, chains[e.Key])
			}
		}
		return claimantsOf(list, chains)
	}
}

// elsewhere is a route that the controller never sees. chain is nil unless it is bound to a Router.
func elsewhere(e *source.Event, host string, chain *controller.NameChain) controller.Claimant {
	why := cmp.Or(controller.Elsewhere(e), "it is not one that this router selects: see --router, --labels, --fields, --namespace and --namespace-labels")
	if chain != nil && chain.Name != host {
		why = "this name is what " + chain.Name + " has to be a CNAME of, and clients ask for the route by that host; " + why
	}
	c := controller.ClaimantOf(*e, controller.ClaimOtherShard, why)
	if chain != nil {
		c.Host = chain.Name
	}
	return c
}

// claimantsOf are those of the controller as explanations have them.
func claimantsOf(list []controller.Claimant, chains map[source.Key]*controller.NameChain) []Claimant {
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
		all[i].DNS = dnsOf(chains[source.Key{Namespace: c.Namespace, Name: c.Name}])
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

// dnsOf is nil for a route that is not known to be bound.
func dnsOf(c *controller.NameChain) *DNS {
	if c == nil {
		return nil
	}
	d := &DNS{Name: c.Name, Routers: make([]DNSRouter, len(c.Routers))}
	if c.Target != c.Name {
		d.Target = c.Target
	}
	for i, r := range c.Routers {
		d.Routers[i] = DNSRouter{r.Name, r.Addresses}
	}
	return d
}

// Changes is HandlerConfig.Change of a controller. ofHost is that of Claims.
func Changes(control *controller.Controller, ofHost func(ctx context.Context, host string) ([]source.Event, error)) Change {
	return func(ctx context.Context, manifest []byte) (*World, error) {
		next, table, err := control.Preview(ctx, manifest)
		if err != nil {
			return nil, err
		}
		return &World{Table: table, Claimants: Claims(next, ofHost), Settings: Settings(next), Gateways: next}, nil
	}
}

// claimantKey names a claimant.
type claimantKey struct{ kind, namespace, name string }

// claimants are those of a host.
type claimants map[claimantKey]*Claimant

// sortClaimants puts those of the Gateway API in order, behind the others, which have one.
func sortClaimants(list []*Claimant) {
	slices.SortStableFunc(list, func(a, b *Claimant) int {
		if a.Kind == "" || b.Kind == "" {
			return cmp.Compare(min(len(a.Kind), 1), min(len(b.Kind), 1))
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}
