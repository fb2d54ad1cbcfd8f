//go:build !linux

package reactor

import (
	"turnout/internal/reactor/engine"
)

// platformEngine is the goroutine-fed engine where there is no epoll.
func platformEngine(cfg Config) (engine.Engine, error) { return newPortableEngine(cfg) }
