package proxy

import "fmt"

// Configure has exchanges and relays that begin from now on treated by next; those that have begun go on by what they began with, but
// for Timeouts of what holds a connection, which count from the next wait on, and AccessLog: what ends from now on goes to that of next.
// Of next it takes Timeouts, AccessLog, RequestActions, ResponseActions, MaxRewrite, AuthVersion, KeepClientIdentity, UniqueID, Captures,
// Compression, Unavailable, NotFound, NotFoundOfHosts and AbortOnClose; the rest stays. It fails, and nothing changes, for the reasons that NewWorker does. Like all
// methods it is called on the worker's loop.
func (w *Worker) Configure(next Config) error {
	if err := next.Timeouts.Validate(); err != nil {
		return fmt.Errorf("cannot configure a proxy worker: %w", err)
	}
	cfg := *w.cfg
	cfg.Timeouts, cfg.AccessLog, cfg.AbortOnClose = next.Timeouts, next.AccessLog, next.AbortOnClose
	cfg.RequestActions, cfg.ResponseActions, cfg.MaxRewrite = next.RequestActions, next.ResponseActions, next.MaxRewrite
	cfg.AuthVersion = next.AuthVersion
	cfg.KeepClientIdentity, cfg.UniqueID, cfg.Captures = next.KeepClientIdentity, next.UniqueID, next.Captures
	cfg.Compression, cfg.Unavailable, cfg.NotFound, cfg.NotFoundOfHosts = next.Compression, next.Unavailable, next.NotFound, next.NotFoundOfHosts
	if cfg.MaxRewrite == 0 {
		cfg.MaxRewrite = DefaultMaxRewrite
	}
	w.cfg, w.timeouts = &cfg, cfg.Timeouts
	return nil
}
