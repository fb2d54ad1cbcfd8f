package expression

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"turnout/controller/shard"
)

// variable is something that expressions may know.
type variable struct {
	name string
	kind *cel.Type
}

// variables are all of them. Each has a name with a dot, so that none is made for expressions that do not ask for it.
func variables() []variable {
	labels := cel.MapType(cel.StringType, cel.StringType)
	return []variable{
		{"route.namespace", cel.StringType},
		{"route.name", cel.StringType},
		{"route.host", cel.StringType}, // "": the system gives it a name
		{"route.labels", labels},
		{"route.namespaceLabels", labels},
		{"router.name", cel.StringType},
		{"router.labels", labels},
		{"router.routes", cel.IntType},
		{"router.requestsPerSecond", cel.IntType},
		{"router.capacity", cel.IntType},         // routes; 0: no limit
		{"router.requestsCapacity", cel.IntType}, // requests per second; 0: unknown
	}
}

// subjects are a route and a router that is scored for it.
type subjects struct {
	adapter types.Adapter
	route   *shard.Route
	router  *shard.Router
	labels  map[shard.Labels]ref.Val // many routers have the same
}

// ResolveName is cel.Activation's.
func (s *subjects) ResolveName(name string) (any, bool) {
	switch name {
	case "route.namespace":
		return s.route.Namespace, true
	case "route.name":
		return s.route.Name, true
	case "route.host":
		return s.route.Host, true
	case "route.labels":
		return s.labelsOf(s.route.Labels), true
	case "route.namespaceLabels":
		return s.labelsOf(s.route.NamespaceLabels), true
	case "router.name":
		return s.router.Name, true
	case "router.labels":
		return s.labelsOf(s.router.Labels), true
	case "router.routes":
		return types.Int(s.router.Bound), true
	case "router.requestsPerSecond":
		return types.Int(s.router.RequestsPerSecond), true
	case "router.capacity":
		return types.Int(s.router.Capacity), true
	case "router.requestsCapacity":
		return types.Int(s.router.RequestsCapacity), true
	}
	return nil, false
}

// Parent is cel.Activation's.
func (s *subjects) Parent() cel.Activation { return nil }

func (s *subjects) labelsOf(l shard.Labels) ref.Val {
	v := s.labels[l]
	if v == nil {
		m := l.Map()
		if m == nil {
			m = map[string]string{}
		}
		v = s.adapter.NativeToValue(m)
		if s.labels == nil {
			s.labels = make(map[shard.Labels]ref.Val)
		}
		s.labels[l] = v
	}
	return v
}
