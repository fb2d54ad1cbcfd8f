// Package ingresses is the options about Ingresses of networking.k8s.io/v1.
package ingresses

import (
	"fmt"
	"net/netip"

	"turnout/controller"
	"turnout/controller/ingress"
	"turnout/internal/option"
)

// Group is what the help lists them under.
const Group = "Ingresses"

// Options are those that are not options of the controller.
type Options struct {
	addresses []string
}

// Table binds o and c.
func (o *Options) Table(c *controller.Options) []option.Option {
	return []option.Option{
		{Flag: "ingress", Env: "TURNOUT_INGRESS", Def: "false", IsBool: true, EnvStops: true, Set: option.Into(&c.Ingress, option.ParseBool),
			Help: "serve Ingresses of networking.k8s.io/v1 beside Routes, and answer requests that nothing is there for with 404; see docs/ingress.md"},
		{Flag: "ingress-class-controller", Env: "TURNOUT_INGRESS_CLASS_CONTROLLER", Value: "DOMAIN/NAME", EnvStops: true, Set: option.Into(&c.IngressController, option.Checked(ingress.CheckController)),
			Help: "spec.controller of the IngressClasses whose Ingresses are served; the default is turnout.router/ingress"},
		{Flag: "ingress-status-address", Env: "TURNOUT_INGRESS_STATUS_ADDRESS", Value: "LIST", EnvStops: true, Set: option.Into(&o.addresses, parseAddresses),
			Help: "IP addresses and host names for the status of Ingresses; the default is --router-canonical-hostname, and without both their status is left as it is"},
	}
}

// Addresses are those for the status of Ingresses; nil = it is left as it is.
func (o *Options) Addresses(canonical string) []string {
	if len(o.addresses) == 0 && canonical != "" {
		return []string{canonical}
	}
	return o.addresses
}

// parseAddresses reads IP addresses and host names.
func parseAddresses(s string) ([]string, error) {
	list := option.ParseList(s)
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			continue
		}
		if _, err := option.ParseDNSName(text); err != nil {
			return nil, fmt.Errorf("allowed: IP addresses and host names separated by commas: %q is neither", text)
		}
	}
	return list, nil
}
