package soak

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// client is one client of a kind: each turn is some requests, one after the other or at once. After an error it begins anew
// with drop. Nothing is repeated: what fails has failed.
type client interface {
	turn() (requests int, err error)
	drop()
}

// kind is a sort of client.
type kind struct {
	name    string
	clients int
	every   time.Duration // from one turn to the next
	make    func(s *scene) client
}

// kinds are the mixed load: some 900 requests a second.
func kinds() []kind {
	return []kind{
		{"HTTP/1.1, kept", 8, 20 * time.Millisecond, func(s *scene) client { return &pages{lane{s: s, host: hostWeb, most: 1000}} }},
		{"HTTP/1.1, closed after each", 2, 20 * time.Millisecond, func(s *scene) client { return &pages{lane{s: s, host: hostWeb, most: 1}} }},
		{"TLS, kept", 2, 20 * time.Millisecond, newSecure(500)},
		{"TLS, resumed for each", 2, 50 * time.Millisecond, newSecure(1)},
		{"HTTP/2", 2, 100 * time.Millisecond, func(s *scene) client { return &streams{s: s, host: hostWeb} }},
		{"streams as gRPC's", 2, 100 * time.Millisecond, func(s *scene) client { return &calls{streams{s: s, host: hostStream}} }},
		{"POST", 2, 50 * time.Millisecond, func(s *scene) client { return &posts{lane: lane{s: s, host: hostWeb, most: 100}} }},
		{"downloads", 1, time.Second, func(s *scene) client { return &downloads{lane{s: s, host: hostWeb, most: 3}} }},
		{"downloads, TLS", 1, time.Second, func(s *scene) client {
			return &downloads{lane{s: s, host: hostWeb, most: 3, cfg: clientTLS(hostWeb, nil)}}
		}},
		{"pods of HTTP/2", 2, 20 * time.Millisecond, func(s *scene) client { return &pages{lane{s: s, host: hostStream, most: 1000}} }},
		{"POST, pods of HTTP/2", 2, 50 * time.Millisecond, func(s *scene) client { return &posts{lane: lane{s: s, host: hostStream, most: 100}} }},
		{"slow readers", 2, 50 * time.Millisecond, func(s *scene) client { return &sips{lane{s: s, host: hostWeb}} }},
		{"slow readers, pods of HTTP/2", 2, 50 * time.Millisecond, func(s *scene) client { return &sips{lane{s: s, host: hostStream}} }},
		{"clients that leave", 2, 50 * time.Millisecond, func(s *scene) client { return &glances{streams{s: s, host: hostWeb}} }},
		{"leavers, pods of HTTP/2", 2, 50 * time.Millisecond, func(s *scene) client { return &glances{streams{s: s, host: hostStream}} }},
		{"sticky cookies", 2, 20 * time.Millisecond, func(s *scene) client { return &sticky{lane: lane{s: s, host: hostSticky, most: 30}} }},
	}
}

// counter is what became of the requests of a kind.
type counter struct {
	kind
	requests, failed, resumed atomic.Int64

	mu    sync.Mutex
	first []string // errors, at most someWrong
}

// mix is the mixed load while it runs.
type mix struct {
	counters []*counter
	running  sync.WaitGroup
}

// startMix starts all clients. They end with ctx, each after the turn it is in.
func startMix(ctx context.Context, s *scene) *mix {
	m := &mix{}
	for _, k := range kinds() {
		c := &counter{kind: k}
		m.counters = append(m.counters, c)
		for range k.clients {
			m.running.Go(func() { c.run(ctx, k.make(s)) })
		}
	}
	return m
}

func (c *counter) run(ctx context.Context, cl client) {
	defer cl.drop()
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := cl.turn()
		c.requests.Add(int64(n))
		if r, ok := cl.(*secure); ok {
			c.resumed.Store(c.resumed.Load() + r.takeResumed())
		}
		if err == nil {
			continue
		}
		cl.drop()
		c.failed.Add(1)
		c.mu.Lock()
		if len(c.first) < someWrong {
			c.first = append(c.first, time.Now().Format(time.TimeOnly)+" "+err.Error())
		}
		c.mu.Unlock()
	}
}

func (m *mix) wait() { m.running.Wait() }

func (m *mix) counts() (requests, failed int64) {
	for _, c := range m.counters {
		requests += c.requests.Load()
		failed += c.failed.Load()
	}
	return requests, failed
}

func (m *mix) print(out io.Writer) {
	for _, c := range m.counters {
		fmt.Fprintf(out, "%-30s %9d requests, %d failed", c.name, c.requests.Load(), c.failed.Load())
		if n := c.resumed.Load(); n > 0 {
			fmt.Fprintf(out, ", %d sessions resumed", n)
		}
		fmt.Fprintln(out)
	}
}

func (m *mix) judge() (wrong []string) {
	for _, c := range m.counters {
		if c.requests.Load() == 0 {
			wrong = append(wrong, c.name+": there was no request")
		}
		c.mu.Lock()
		if n := c.failed.Load(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %d requests failed, first %q", c.name, n, c.requests.Load(), c.first))
		}
		c.mu.Unlock()
	}
	return wrong
}
