package server

import (
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/identity"
	"turnout/routing"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// Deciding is what the request path decides by, for who wants to know what it would decide. It is read-only.
type Deciding struct {
	Proxy     proxy.Config // without Store, Clock, Upstreams, AccessLog and Bounds
	Heads     http1.Limits // of requests of HTTP/1.1
	StrictSNI bool
	// Anonymous is a client without a certificate by how its connection came in, nil = it is not asked for one. Mandatory says that it is refused
	// in the handshake.
	Anonymous func(*routing.Arrival) *identity.Identity
	Mandatory func(*routing.Arrival) bool
	Now       func() int64 // the time that limits per source address go by, in nanoseconds; nil = there are no such times. Any goroutine may call it

	HTTPAddr, HTTPSAddr string // as in Config
}

// Deciding is what a Server made from cfg would decide by before its first request.
func (cfg Config) Deciding() Deciding {
	cfg = cfg.complete()
	d := Deciding{Proxy: cfg.Proxy, Heads: cfg.Limits.heads(cfg.Proxy.MaxRewrite), StrictSNI: cfg.StrictSNI, HTTPAddr: cfg.HTTPAddr, HTTPSAddr: cfg.HTTPSAddr}
	nobody := cfg.Identities.Of(nil)
	d.Anonymous = func(a *routing.Arrival) *identity.Identity { return cfg.identity(&tlsmux.Info{Arrival: a}, nobody) }
	d.Mandatory = func(a *routing.Arrival) bool {
		if a != nil && a.Auth != nil {
			return a.Auth.Mode() == clientcert.Required
		}
		return cfg.TLS.ClientAuth == clientcert.Required
	}
	d.Proxy.Store, d.Proxy.Clock, d.Proxy.Upstreams, d.Proxy.AccessLog, d.Proxy.Bounds = nil, nil, nil, nil, nil
	return d
}

// Deciding is what is decided by now.
func (p *RequestPath) Deciding() Deciding {
	d := p.now.Load().Deciding()
	d.Proxy = p.sharing(d.Proxy)
	d.Now = p.order[0].Elapsed
	return d
}

// sharing adds what the workers of all loops have in common.
func (p *RequestPath) sharing(cfg proxy.Config) proxy.Config {
	cfg.Overloaded, cfg.RouteConnections, cfg.Crowded = p.guard.Refusing(), p.cfg.Limits.routeConnections(descriptorLimit()), p.budget.Crowded
	return cfg
}
