package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard"
	"turnout/controller/shard/strategy"
	"turnout/controller/shard/strategy/expression"
	"turnout/controller/shard/strategy/webhook"
)

// size is how large a cluster is.
type size struct {
	Routes  int `json:"routes"`
	Routers int `json:"routers"`
	Lost    int `json:"lost"`   // routers that are lost
	Added   int `json:"added"`  // that are added then
	Writes  int `json:"writes"` // per second at most
}

// The cluster of the issue, and a tenth of it for strategies that look at each router for each route.
var (
	large = size{Routes: 1_000_000, Routers: 1000, Lost: 10, Added: 100, Writes: 1000}
	tenth = size{Routes: 100_000, Routers: 100, Lost: 1, Added: 10, Writes: 1000}
)

// strategyCase is a strategy and what it is simulated with.
type strategyCase struct {
	name   string
	about  string
	size   size
	groups int // of routers that share no routes; 0: one
	make   func() (s shard.Strategy, end func(), err error)
}

func cases() []strategyCase {
	plain := func(s func() shard.Strategy) func() (shard.Strategy, func(), error) {
		return func() (shard.Strategy, func(), error) { return s(), func() {}, nil }
	}
	return []strategyCase{
		{name: "RoundRobin", size: large, make: plain(strategy.RoundRobin)},
		{name: "Label", about: "10 groups of routers; half of the routes are selected by a label of their own, half by one of their namespace", size: large, groups: 10, make: plain(strategy.Label)},
		{name: "LeastRoutes", size: large, make: plain(strategy.LeastRoutes)},
		{name: "LeastRequests", size: large, make: plain(strategy.LeastRequests)},
		{name: "ConsistentHash", size: large, make: plain(strategy.ConsistentHash)},
		{name: "Spread", about: "each route on 2 routers, 3 zones", size: large, make: plain(func() shard.Strategy { return strategy.Spread(2, "") })},
		{name: "CEL", about: "`-router.routes`", size: tenth, make: func() (shard.Strategy, func(), error) {
			s, err := expression.New("-router.routes")
			return s, func() {}, err
		}},
		{name: "Webhook", about: "a server of the same process, asked over HTTP, that takes the router with the least routes", size: tenth, make: byWebhook},
	}
}

// byWebhook is a server that chooses, and the strategy that asks it.
func byWebhook() (shard.Strategy, func(), error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q webhook.Question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		least := q.Routers[0]
		for _, e := range q.Routers {
			if e.Routes < least.Routes {
				least = e
			}
		}
		_ = json.NewEncoder(w).Encode(webhook.Answer{Router: least.Name})
	}))
	s, err := webhook.New(webhook.Config{URL: server.URL})
	if err != nil {
		server.Close()
		return nil, nil, fmt.Errorf("cannot ask the server: %w", err)
	}
	return s, func() { s.Close(); server.Close() }, nil
}

// aRouter is router i of those of a case.
func (c *strategyCase) aRouter(i int) shard.Router {
	r := shard.Router{
		Name: fmt.Sprintf("router-%04d", i), UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i), Created: int64(i),
		Domain: fmt.Sprintf("s%04d.apps.example.com", i), TTL: 30 * time.Second,
		Labels: shard.MakeLabels(map[string]string{strategy.ZoneLabel: string(rune('a' + i%3))}),
	}
	if c.groups > 0 {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{"group": c.group(i)}}
		if i%c.groups < c.groups/2 {
			r.RouteSelector = s
		} else {
			r.NamespaceSelector = s
		}
	}
	return r
}

// group is the label by which router, or route, i is selected.
func (c *strategyCase) group(i int) string { return fmt.Sprintf("g%d", i%max(c.groups, 1)) }

// perNamespace is how many routes a namespace has.
const perNamespace = 100

// aNamespace is namespace i: its name and labels.
func (c *strategyCase) aNamespace(i int) (string, map[string]string) {
	name := fmt.Sprintf("project-%05d", i)
	if c.groups > 0 && i%2 == 1 {
		return name, map[string]string{"group": c.group(c.groups/2 + i/2%(c.groups-c.groups/2))}
	}
	return name, nil
}

// aRoute is route i, of a namespace.
func (c *strategyCase) aRoute(i int, namespace string) shard.Route {
	r := shard.Route{Namespace: namespace, Name: fmt.Sprintf("web-%07d", i), UID: fmt.Sprintf("%08x-1111-4000-8000-%012x", i, i), Created: int64(i)}
	if c.groups > 0 && i/perNamespace%2 == 0 {
		r.Labels = shard.MakeLabels(map[string]string{"group": c.group(i % (c.groups / 2))})
	}
	return r
}

// requests is how many requests a second a route gets: the mean is 1, most get less, one in a thousand more than 30 (a Pareto distribution).
func requests(r *shard.Route) float64 {
	f := fnv.New64a()
	_, _ = f.Write([]byte(r.Name))
	u := (float64(rand.New(rand.NewPCG(f.Sum64(), 0)).Uint64()>>11) + 1) / (1 << 53)
	return min(math.Pow(u, -1/1.5)/3, 1000)
}
