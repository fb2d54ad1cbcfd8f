package routing

import (
	"fmt"
	"slices"

	"turnout/balancer"
)

// poolContents compares the contents of the pools that rules of one object share. The rules of an
// object come one after the other. The zero value is ready.
type poolContents struct {
	first RuleSpec                // of the object; its pools are in known as soon as a second rule comes
	known map[poolName]poolConfig // nil or empty while the object has one rule
}

// poolName is a pool among those of an object.
type poolName struct{ kind, name string }

// poolConfig is the content of a pool.
type poolConfig struct {
	config  balancer.PoolConfig
	targets []balancer.Target
}

// add fails if spec gives a pool other contents than an earlier rule of its object does.
func (c *poolContents) add(spec *RuleSpec) error {
	if a, b := c.first.RouteKey, spec.RouteKey; a.Namespace != b.Namespace || a.Name != b.Name || a.UID != b.UID {
		c.first = *spec
		clear(c.known)
		return nil
	}
	if c.first.Rule == spec.Rule {
		return nil // the last spec of a rule replaces the others
	}
	if len(c.known) == 0 {
		if c.known == nil {
			c.known = make(map[poolName]poolConfig)
		}
		_ = c.compare(&c.first)
	}
	return c.compare(spec)
}

// compare fails if a pool of spec is known with other contents. It adds the others to the known
// ones.
func (c *poolContents) compare(spec *RuleSpec) (err error) {
	one := func(kind, name string, config balancer.PoolConfig, targets []balancer.Target) {
		at := poolName{kind, name}
		known, ok := c.known[at]
		if !ok {
			c.known[at] = poolConfig{config, targets}
			return
		}
		if err == nil && (known.config != config || !sameTargets(known.targets, targets)) {
			err = fmt.Errorf("another rule has other servers for the pool %.200q", kind+name)
		}
	}
	if len(spec.Backends) == 0 {
		one(targetPool, spec.PoolKey, spec.Pool, spec.Targets)
	}
	for i := range spec.Backends {
		if s := &spec.Backends[i]; s.Status == 0 {
			one(backendPool, s.Key, s.Pool, s.Targets)
		}
	}
	for i := range spec.Mirrors {
		s := &spec.Mirrors[i]
		one(mirrorPool, s.Key, s.Pool, s.Targets)
	}
	return err
}

// sameTargets reports whether two lists are equal. Rules mostly have one list in common.
func sameTargets(a, b []balancer.Target) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}
