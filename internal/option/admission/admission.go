// Package admission is the options about which Routes are admitted, by which hosts, and what is said of it.
package admission

import (
	"turnout/controller"
	"turnout/internal/option"
)

// Group is what the help lists them under.
const Group = "Admission"

// Table binds c.
func Table(c *controller.Options) []option.Option {
	return []option.Option{
		{Flag: "name", Env: "ROUTER_SERVICE_NAME", Def: "public", Value: "NAME", Set: option.Into(&c.RouterName, option.ParseText),
			Help: "the router's name in route status"},
		{Flag: "router-canonical-hostname", Env: "ROUTER_CANONICAL_HOSTNAME", Value: "HOST", EnvStops: true,
			Set: option.Into(&c.CanonicalHostname, option.ParseDNSName), Help: "host name of the router itself, written to route status"},
		{Flag: "router-domain", Env: "ROUTER_DOMAIN", Value: "DOMAIN", Set: option.Into(&c.Domain, option.ParseText),
			Help: "domain that completes spec.subdomain"},
		{Flag: "hostname-template", Env: "ROUTER_SUBDOMAIN", Value: "TEMPLATE", Set: option.Into(&c.HostTemplate, option.ParseText),
			Help: "host of routes without one, made of ${name} and ${namespace}"},
		{Flag: "override-hostname", Env: "ROUTER_OVERRIDE_HOSTNAME", Def: "false", IsBool: true, Set: option.Into(&c.OverrideHostname, option.ParseBool),
			Help: "use --hostname-template for every route"},
		{Flag: "override-domains", Env: "ROUTER_OVERRIDE_DOMAINS", Value: "LIST", Set: option.List(&c.OverrideDomains),
			Help: "use --hostname-template for hosts within these domains"},
		{Flag: "denied-domains", Env: "ROUTER_DENIED_DOMAINS", Value: "LIST", Set: option.List(&c.DeniedDomains),
			Help: "domains whose hosts are rejected; wins over --allowed-domains"},
		{Flag: "allowed-domains", Env: "ROUTER_ALLOWED_DOMAINS", Value: "LIST", Set: option.List(&c.AllowedDomains),
			Help: "when given, hosts outside these domains are rejected"},
		{Flag: "allow-wildcard-routes", Env: "ROUTER_ALLOW_WILDCARD_ROUTES", Def: "false", IsBool: true,
			Set: option.Into(&c.AllowWildcard, option.ParseBool), Help: "admit routes with wildcardPolicy Subdomain"},
		{Flag: "disable-namespace-ownership-check", Env: "ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", Def: "false", IsBool: true,
			Set: option.Into(&c.DisableNamespaceOwnership, option.ParseBool), Help: "let routes of several namespaces share a host"},
		{Flag: "extended-validation", Env: "EXTENDED_VALIDATION", Def: "true", IsBool: true,
			Set: option.Into(&c.SkipExtendedValidation, option.Not(option.ParseBool)), Help: "validate the tls section of routes in full"},
		{Flag: "allow-external-certificates", Env: "ROUTER_ENABLE_EXTERNAL_CERTIFICATE", Def: "true", IsBool: true,
			Set: option.Into(&c.SkipExternalCertificate, option.Not(option.ParseBool)), Help: "serve certificates of Secrets that routes refer to"},
		{Flag: "upgrade-validation", Env: "UPGRADE_VALIDATION", Def: "true", IsBool: true, Set: option.Into(&c.SkipUpgradeValidation, option.Not(option.ParseBool)),
			Help: "say in route status whether later versions can serve a route"},
		{Flag: "debug-upgrade-validation-force-add-condition", Env: "DEBUG_UPGRADE_VALIDATION_FORCE_ADD_CONDITION", Def: "false", IsBool: true,
			Set: option.Into(&c.ForceUnservable, option.ParseBool), Help: "say of every admitted route that they cannot, to see what comes of it"},
		{Flag: "debug-upgrade-validation-force-remove-condition", Env: "DEBUG_UPGRADE_VALIDATION_FORCE_REMOVE_CONDITION", Def: "false", IsBool: true,
			Set: option.Into(new(bool), option.ParseBool), Help: "say of every route that they can, which is so anyway; the flag above wins"},
	}
}
