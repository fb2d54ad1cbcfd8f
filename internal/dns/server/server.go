package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"turnout/internal/dns/zone"
)

// Server answers queries. It is made by New.
type Server struct {
	cfg       Config
	set       atomic.Pointer[zone.Set]
	keys      atomic.Pointer[Keys]
	limiter   *limiter
	workers   []*worker
	gate      *gate
	transfers transfers
	notifiers []*notifier

	notified, notNotified atomic.Uint64
}

// New listens. Nothing is answered before Run.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("cannot make a DNS server: %w", err)
	}
	s := &Server{cfg: cfg, limiter: newLimiter(cfg.Rate, cfg.Slip)}
	s.keys.Store(&cfg.Keys)
	s.transfers.room = make(chan struct{}, cfg.Limits.Transfers)
	empty, err := zone.NewSet()
	if err != nil {
		return nil, err
	}
	s.set.Store(empty)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("cannot make a DNS server: %w", err)
	}
	for _, to := range cfg.Notify {
		s.notifiers = append(s.notifiers, newNotifier(s, to))
	}
	return s, nil
}

// listenAttempts is how often a port that the system chose for TCP may turn out to be taken for UDP.
const listenAttempts = 16

func (s *Server) listen() error {
	var err error
	for range listenAttempts {
		var l net.Listener
		if l, err = net.Listen("tcp", s.cfg.Addr); err != nil {
			return err
		}
		addr := l.Addr().String()
		if s.workers, err = listenUDP(s, addr); err == nil {
			s.gate = newGate(s, l)
			return nil
		}
		err = errors.Join(err, l.Close())
		if _, port, _ := net.SplitHostPort(s.cfg.Addr); port != "0" {
			return err
		}
	}
	return err
}

// Addr is where the server listens, with UDP and TCP.
func (s *Server) Addr() string { return s.gate.listener.Addr().String() }

// Zones is the set that is answered from.
func (s *Server) Zones() *zone.Set { return s.set.Load() }

// Publish has queries answered from a set, and secondaries notified which zones have another serial than before.
func (s *Server) Publish(set *zone.Set) {
	before := s.set.Swap(set)
	for _, z := range set.All() {
		if old := before.Zone(z.Origin()); old != nil && old.Serial() == z.Serial() {
			continue
		}
		for _, n := range s.notifiers {
			n.changed(z.Origin())
		}
	}
}

// SetKeys has other keys count from now on.
func (s *Server) SetKeys(keys Keys) { s.keys.Store(&keys) }

// Run answers until ctx is done, and then closes everything. It is to be called once, after the first Publish.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, w := range s.workers {
		running.Go(func() { cancel(w.run()) })
	}
	running.Go(func() { cancel(s.gate.run()) })
	for _, n := range s.notifiers {
		running.Go(func() { n.run(ctx) })
	}
	<-ctx.Done()
	s.close()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Close closes the sockets of a server that is not run.
func (s *Server) Close() { s.close() }

func (s *Server) close() {
	for _, w := range s.workers {
		_ = w.conn.Close()
	}
	s.gate.close()
}
