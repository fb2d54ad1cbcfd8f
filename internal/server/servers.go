package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"turnout/balancer"
	"turnout/internal/health"
	"turnout/internal/problem"
)

// mostRoutes is how many of the routes of an endpoint a line or a problem names.
const mostRoutes = 5

// routeOf is NAMESPACE/NAME of the key of a pool, see routing.RouteKey.
func routeOf(key string) string {
	parts := strings.SplitN(key, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// checked logs what health checks found, and has the list of problems say so. With a request it names that: other routes may see the endpoint
// otherwise.
func (p *RequestPath) checked(c *balancer.Check, up bool, why health.Result) {
	keys, all := p.cfg.Registry.PoolsOf(c, mostRoutes)
	for i := range keys {
		keys[i] = routeOf(keys[i])
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	routes := strings.Join(keys, ",")
	if all > mostRoutes {
		routes = fmt.Sprintf("%s and %d more", routes, all-len(keys))
	}
	address := c.Endpoint().Addr()
	fields := []Field{
		{"namespace", c.Endpoint().Namespace()}, {"service", c.Service()}, {"route", routes}, {"address", address}, {"result", why.Outcome},
	}
	owner := fmt.Sprintf("server/%s/%s/down", c.Endpoint().Namespace(), address)
	if c.HTTP().Asks() {
		h := c.HTTP().Request()
		fields = append(fields, Field{"path", h.Path}, Field{"host", h.Host})
		owner += h.Host + h.Path
	}
	if why.Status != 0 {
		fields = append(fields, Field{"status", why.Status})
	}
	if up {
		p.cfg.Problems.Set(owner)
		p.cfg.Log(Info, "endpoint is up", fields...)
		return
	}
	const text = "endpoint is down: its health checks fail"
	p.cfg.Problems.Set(owner, problem.Problem{
		Kind: problem.Down, Namespace: c.Endpoint().Namespace(), Service: c.Service(), Route: routes, Server: address.String(), Reason: why.Outcome.String(), Text: text,
	})
	p.cfg.Log(Warning, text, fields...)
}

// ejected logs that a server gets no requests for a while, and has the list of problems say so. It is called on event loops, and waits for nobody:
// neither does the log.
func (p *RequestPath) ejected(key string, s *balancer.Server, back time.Duration) {
	const text = "server is ejected: requests to it failed"
	address, route, namespace := s.Endpoint().Addr(), routeOf(key), s.Endpoint().Namespace()
	fields := []Field{{"namespace", namespace}, {"service", s.Service()}, {"route", route}, {"server", s.ID()}, {"address", address}}
	owner := fmt.Sprintf("server/%s/%s/ejected/%s", namespace, address, key)
	if back == 0 {
		p.cfg.Problems.Set(owner)
		p.cfg.Log(Info, "server gets requests again", fields...)
		return
	}
	p.cfg.Problems.Set(owner, problem.Problem{Kind: problem.Ejected, Namespace: namespace, Service: s.Service(), Route: route, Server: address.String(), Text: text})
	p.cfg.Log(Warning, text, append(fields, Field{"for", back})...)
}
