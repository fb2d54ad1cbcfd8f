package server

import (
	"errors"
	"fmt"

	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/proxy/identity"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// applied is what a request path goes by now. It is immutable.
type applied struct {
	Config
	anonymous *identity.Identity // of clients without a certificate
}

// sameAuth says that clients have to show the same with next as with cfg and trust.
func (cfg *Config) sameAuth(trust *clientcert.Trust, next *Config) bool {
	text := func(r *identity.Rules) string {
		if r.Filter == nil {
			return ""
		}
		return r.Filter.String()
	}
	return cfg.TLS.ClientAuth == next.TLS.ClientAuth && trust == next.TLS.Trust && text(&cfg.Identities) == text(&next.Identities)
}

// with is cfg with what of next can be put in its place while a server runs.
func (cfg Config) with(next *Config) Config {
	to, from := &cfg.Proxy, &next.Proxy
	to.Timeouts, to.AccessLog, to.AbortOnClose = from.Timeouts, from.AccessLog, from.AbortOnClose
	to.RequestActions, to.ResponseActions, to.MaxRewrite = from.RequestActions, from.ResponseActions, from.MaxRewrite
	to.KeepClientIdentity, to.UniqueID, to.Captures = from.KeepClientIdentity, from.UniqueID, from.Captures
	to.Compression, to.Unavailable, to.NotFound = from.Compression, from.Unavailable, from.NotFound
	cfg.TLS, cfg.Identities, cfg.ProxyProtocol = next.TLS, next.Identities, next.ProxyProtocol
	cfg.Limits.Connections, cfg.Limits.BufferSize = next.Limits.Connections, next.Limits.BufferSize
	cfg.Adjust, cfg.IgnoreProbes, cfg.DontLogNull, cfg.KeepIdle = next.Adjust, next.IgnoreProbes, next.DontLogNull, next.KeepIdle
	cfg.HTTPAddr, cfg.HTTPSAddr = next.HTTPAddr, next.HTTPSAddr
	return cfg
}

// ReadBuffer is how long the longest head may be that a server made from cfg reads, whatever Apply says.
func (cfg *Config) ReadBuffer() int { return max(cfg.Limits.BufferSize, defaultReadBuffer) }

// Apply has the request path go by next from now on: of Proxy what proxy.Worker.Configure takes, TLS, Identities, Limits.Connections and
// BufferSize, Adjust, IgnoreProbes, DontLogNull and KeepIdle; the rest stays as it was made. Requests and connections that have begun are
// not interrupted; but clients with TLS connect again after their next answer when what they have to show is something else. on calls a function on a loop, and returns when it has been called. An error says what cannot be used; then nothing
// has changed.
func (p *RequestPath) Apply(next Config, on func(*reactor.Loop, func())) error {
	now := p.now.Load()
	next = now.with(&next)
	if next.Proxy.AuthVersion = now.Proxy.AuthVersion; !now.sameAuth(p.policy.Trust(), &next) {
		next.Proxy.AuthVersion++
	}
	if err := next.Proxy.Timeouts.Validate(); err != nil {
		return err
	}
	if most := p.cfg.ReadBuffer(); next.Limits.BufferSize > most {
		return fmt.Errorf("heads of %d bytes are more than the %d that were set aside at the start", next.Limits.BufferSize, most)
	}
	if err := p.policy.Configure(policyOf(&next)); err != nil {
		return err
	}
	p.setShared(next)
	var err error
	for _, loop := range p.order {
		on(loop, func() { err = errors.Join(err, p.loops[loop].configure(&next)) })
	}
	return err
}

// setShared has what all loops share go by cfg.
func (p *RequestPath) setShared(cfg Config) {
	p.now.Store(&applied{Config: cfg, anonymous: cfg.Identities.Of(nil)})
	p.budget.SetConnections(cfg.Limits.Connections)
	p.client.SetTimeout(cfg.Proxy.Timeouts.Connect)
	p.mux.SetInspectDelay(cfg.Proxy.Timeouts.ClientHello)
}

// policyOf is what TLS towards clients goes by.
func policyOf(cfg *Config) tlsmux.PolicyConfig {
	c := cfg.TLS
	c.AuthVersion = cfg.Proxy.AuthVersion
	c.Protocols = []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}
	return c
}

// configure has the packages of the loop go by cfg. It is called on the loop, or before that runs.
func (ln *PerLoop) configure(cfg *Config) error {
	heads, connect := cfg.Limits.heads(cfg.Proxy.MaxRewrite), cfg.Proxy.Timeouts.Connect
	ln.Pools1.Configure(heads, cfg.Adjust, connect)
	ln.Pools2.Configure(connect)
	ln.HTTP1.Configure(h1.ServerRules{Limits: heads, Adjust: cfg.Adjust, IgnoreProbes: cfg.IgnoreProbes, DontLogNull: cfg.DontLogNull})
	return ln.Worker.Configure(cfg.Proxy)
}

// Apply is that of RequestPath, and has the ports follow ProxyProtocol, HTTPAddr and HTTPSAddr: connections that are accepted from now on
// begin with a PROXY header or do not, and a port that moves is opened in its new place before it is closed in the old one, in which
// connections that are open live on. A port that cannot be opened stays where it was, and the error says why; all else has changed then.
// It is not called on a loop, nor by two goroutines at once.
func (s *Server) Apply(next Config) error {
	if err := s.RequestPath.Apply(next, s.group.On); err != nil {
		return err
	}
	now := s.now.Load()
	s.proxied.Store(now.ProxyProtocol)
	s.front.SetTimeout(now.Proxy.Timeouts.ClientHello)
	s.health.Configure(now.Proxy.Timeouts.Connect, now.Limits.heads(now.Proxy.MaxRewrite))
	return s.movePorts(&now.Config)
}

// movePorts has the ports that are open listen where cfg says. One may move to where another is only when that has gone.
func (s *Server) movePorts(cfg *Config) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.stopped {
		return nil
	}
	for wanted := map[string]string{HTTPSocket: cfg.HTTPAddr, HTTPSSocket: cfg.HTTPSAddr}; ; {
		moved := false
		var failed error
		for i := range s.ports {
			port := &s.ports[i]
			addr, ok := wanted[port.role]
			if !ok || addr == port.addr {
				continue
			}
			next := openPort{role: port.role, addr: addr, kind: port.kind}
			if err := s.open(&next, port.leads.Load()); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			s.group.CloseListeners(port.bound)
			*port, moved = next, true
		}
		if failed == nil || !moved {
			return failed
		}
	}
}

// Applied is what the request path goes by now, see Apply.
func (p *RequestPath) Applied() Config { return p.now.Load().Config }

// proxyConfig is what exchanges of the loop with this index go by, without what the loop has of its own.
func proxyConfig(cfg *Config, index int) proxy.Config {
	c := cfg.Proxy
	if c.Seed != 0 {
		c.Seed += uint64(index)
	}
	return c
}
