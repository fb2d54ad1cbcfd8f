// Package gateways has the router serve the Gateway API: its options, the ports of Gateways, and what is written about them by the one of several
// processes that leads.
package gateways

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"turnout/controller"
	"turnout/controller/expose"
	"turnout/controller/source"
	"turnout/internal/option"
)

// Group is what the help lists the options under.
const Group = "Gateway API"

// DefaultController is spec.controllerName of the GatewayClasses that are served unless another is given.
const DefaultController = "turnout.router/gateway"

// Options are those about the Gateway API. Table binds them.
type Options struct {
	on         bool
	controller string
	pods       source.Key
	addresses  []string
	service    string // the type

	deployments bool
	image       string
	only        source.Key
}

// Table binds o.
func (o *Options) Table() []option.Option {
	return []option.Option{
		{Flag: "gateway-api", Env: "TURNOUT_GATEWAY_API", Def: "false", IsBool: true, EnvStops: true, Set: option.Into(&o.on, option.ParseBool),
			Help: "serve Gateways and their routes beside Routes; see docs/gateway-api.md"},
		{Flag: "gateway-controller", Env: "TURNOUT_GATEWAY_CONTROLLER", Def: DefaultController, Value: "DOMAIN/PATH", EnvStops: true, Set: option.Into(&o.controller, option.Checked(checkController)),
			Help: "spec.controllerName of the GatewayClasses that are served"},
		{Flag: "gateway-pods", Env: "TURNOUT_GATEWAY_PODS", Value: "NAMESPACE/NAME", EnvStops: true, Set: option.Into(&o.pods, parseKey),
			Help: "the Service that selects the pods of this router: each Gateway gets a Service of its own that leads to them; without it Gateways are served at their ports of this machine"},
		{Flag: "gateway-service-type", Env: "TURNOUT_GATEWAY_SERVICE_TYPE", Def: "LoadBalancer", Value: "TYPE", EnvStops: true, Set: option.Into(&o.service, parseType),
			Help: "type of the Services of Gateways: LoadBalancer, NodePort or ClusterIP"},
		{Flag: "gateway-address", Env: "TURNOUT_GATEWAY_ADDRESS", Value: "LIST", EnvStops: true, Set: option.Into(&o.addresses, parseAddresses),
			Help: "IP addresses for the status of Gateways that have no Service and ask for none; the default is 127.0.0.1"},
		{Flag: "gateway-deployments", Env: "TURNOUT_GATEWAY_DEPLOYMENTS", Def: "false", IsBool: true, EnvStops: true, Set: option.Into(&o.deployments, option.ParseBool),
			Help: "Gateways may have a Deployment of their own, by the parameter mode; needs --gateway-pods"},
		{Flag: "gateway-image", Env: "TURNOUT_GATEWAY_IMAGE", Value: "IMAGE", EnvStops: true, Set: option.Into(&o.image, option.ParseText),
			Help: "image of the pods of such Deployments; the default is that of the pod that this process runs in, whose name is the host name"},
		{Flag: "gateway", Env: "TURNOUT_GATEWAY", Value: "NAMESPACE/NAME", EnvStops: true, Set: option.Into(&o.only, parseKey),
			Help: "serve this Gateway and its ListenerSets only, at the ports that its Service leads to, no Routes, and write nothing: how the pods of such a Deployment are run"},
	}
}

// Controller is what the controller of a router goes by whose own ports are these addresses, host:port.
func (o *Options) Controller(plain, secure, admin string) controller.GatewayOptions {
	if !o.on {
		return controller.GatewayOptions{}
	}
	return controller.GatewayOptions{
		Controller: o.controller, Pods: o.pods, Addresses: o.addresses, Deployments: o.deployments, Only: o.only,
		Own: []expose.Taken{{Addr: plain, For: "Routes without TLS"}, {Addr: secure, For: "Routes with TLS"}, {Addr: admin, For: "the router's administration"}},
	}
}

// Only is the one Gateway that is served; zero = all of them, beside Routes.
func (o *Options) Only() source.Key { return o.only }

// Routes reports whether Routes are served, and status is written: not by a pod of one Gateway.
func (o *Options) Routes() bool { return o.only == (source.Key{}) }

// Check finds options that contradict each other. more: others ask for what a pod of one Gateway does not serve.
func (o *Options) Check(more bool) error {
	switch alone := !o.Routes(); {
	case !o.on && (alone || o.deployments):
		return option.Usagef("--gateway and --gateway-deployments need --gateway-api")
	case o.deployments && o.pods == (source.Key{}):
		return option.Usagef("--gateway-deployments needs --gateway-pods: Gateways have Services then")
	case alone && (o.deployments || o.pods != (source.Key{})):
		return option.Usagef("--gateway serves one Gateway and writes nothing: --gateway-pods and --gateway-deployments are for the routers that all share")
	case alone && more:
		return option.Usagef("--gateway serves one Gateway of a cluster and nothing else: not --manifests, --ingress, --ingress-controller, --router and options that select Routes")
	}
	return nil
}

// On reports whether the Gateway API is served.
func (o *Options) On() bool { return o.on }

func checkController(s string) error {
	domain, path, ok := strings.Cut(s, "/")
	if ok && path != "" && len(s) <= 253 {
		if _, err := option.ParseDNSName(domain); err == nil {
			return nil
		}
	}
	return errors.New("allowed: a domain and a path, such as " + DefaultController)
}

func parseKey(s string) (source.Key, error) {
	key, ok := source.ParseKey(s)
	if !ok {
		return source.Key{}, errors.New("allowed: NAMESPACE/NAME")
	}
	return key, nil
}

func parseType(s string) (string, error) {
	return option.ParseWord(s, "LoadBalancer", "NodePort", "ClusterIP")
}

func parseAddresses(s string) ([]string, error) {
	list := option.ParseList(s)
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("allowed: IP addresses separated by commas: %q is none", text)
		}
	}
	return list, nil
}
