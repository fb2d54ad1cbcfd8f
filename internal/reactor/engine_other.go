//go:build !linux

package reactor

// platformEngine is the goroutine-fed engine where there is no epoll.
func platformEngine(cfg Config) (engine, error) { return newPortableEngine(cfg) }
