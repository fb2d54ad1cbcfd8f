// Package ingresses is the options about Ingresses of networking.k8s.io/v1.
package ingresses

import (
	"errors"
	"fmt"
	"net/netip"

	"turnout/controller"
	"turnout/controller/ingress"
	"turnout/controller/ingresscontroller"
	"turnout/controller/source"
	"turnout/internal/option"
)

// Group is what the help lists them under.
const Group = "Ingresses"

// Options are those that are not options of the controller.
type Options struct {
	// Service is the one that clients reach the router by, whose addresses the status of Ingresses says; zero = none is given.
	Service   source.Key
	addresses []string
}

// Table binds o and c.
func (o *Options) Table(c *controller.Options) []option.Option {
	return []option.Option{
		{Flag: "ingress", Env: "TURNOUT_INGRESS", Def: "false", IsBool: true, EnvStops: true, Set: option.Into(&c.Ingress, option.ParseBool),
			Help: "serve Ingresses of networking.k8s.io/v1 beside Routes; see docs/ingress.md"},
		{Flag: "ingress-class-controller", Env: "TURNOUT_INGRESS_CLASS_CONTROLLER", Value: "DOMAIN/NAME", EnvStops: true, Set: option.Into(&c.IngressController, option.Checked(ingress.CheckController)),
			Help: "spec.controller of the IngressClasses whose Ingresses are served; the default is turnout.router/ingress"},
		{Flag: "ingress-status-address", Env: "TURNOUT_INGRESS_STATUS_ADDRESS", Value: "LIST", EnvStops: true, Set: option.Into(&o.addresses, parseAddresses),
			Help: "IP addresses and host names for the status of Ingresses; the default is --router-canonical-hostname, and without both their status is left as it is"},
		{Flag: "ingress-status-service", Env: "TURNOUT_INGRESS_STATUS_SERVICE", Value: "NAMESPACE/NAME", EnvStops: true, Set: option.Into(&o.Service, parseService),
			Help: "the Service whose load balancer's addresses, else external IPs, the status of Ingresses says instead; followed"},
	}
}

// Addresses are those for the status of Ingresses; nil = it is left as it is, or says what Service says.
func (o *Options) Addresses(canonical string) []string {
	if o.Service != (source.Key{}) {
		return nil // they are read
	}
	if len(o.addresses) == 0 && canonical != "" {
		return []string{canonical}
	}
	return o.addresses
}

// parseService reads NAMESPACE/NAME.
func parseService(s string) (source.Key, error) {
	key, err := ingresscontroller.ReadKey(s)
	if err != nil {
		err = errors.New("allowed: NAMESPACE/NAME of a Service")
	}
	return key, err
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
