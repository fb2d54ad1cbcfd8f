package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"turnout/bench/site"
)

// tally is what became of the changes.
type tally struct {
	changes atomic.Int64

	mu      sync.Mutex
	slowest time.Duration // until a change was in force
	checked int
	wrong   []string // at most someWrong
}

// someWrong is how many errors of a kind are kept.
const someWrong = 5

func (t *tally) failf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.wrong) < someWrong {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
}

func (t *tally) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(out, "%d changes; of routes and certificates %d were looked for, and the last of them seen after %v\n",
		t.changes.Load(), t.checked, t.slowest.Round(time.Millisecond))
}

func (t *tally) judge() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes.Load() == 0 {
		return append(t.wrong, "nothing was changed")
	}
	return t.wrong
}

// change changes something each time, in turn, until ctx is done.
func (s *scene) change(ctx context.Context) {
	tick := time.NewTicker(s.o.update)
	defer tick.Stop()
	turns := []func(context.Context) (seen func() bool, err error){
		s.addPod, s.swapRoutes, s.removePod, s.renew, s.reweigh, s.replaceStreamPod, s.toggleSocketPod,
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		seen, err := turns[n%len(turns)](ctx)
		text := s.manifests()
		s.mu.Unlock()
		if err == nil {
			err = s.router.Write("site.yaml", text)
		}
		if err != nil {
			s.tally.failf("change %d: %v", n, err)
			continue
		}
		s.tally.changes.Add(1)
		if seen != nil {
			s.await(ctx, n, seen)
		}
	}
}

// await looks for a change until it is seen.
func (s *scene) await(ctx context.Context, n int, seen func() bool) {
	began := time.Now()
	switch err := until(ctx, seen); {
	case ctx.Err() != nil:
		return
	case err != nil:
		s.tally.failf("change %d is not in force after %v", n, patience)
		return
	}
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	s.tally.checked++
	s.tally.slowest = max(s.tally.slowest, time.Since(began))
}

// until asks again and again until it is done, at most as long as patience.
func until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait any longer: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

func (s *scene) addPod(context.Context) (func() bool, error) {
	p, err := s.newPod()
	if err == nil {
		s.web = append(s.web, p)
	}
	return nil, err
}

// removePod takes the oldest one.
func (s *scene) removePod(ctx context.Context) (func() bool, error) {
	if len(s.web) <= webPods { // none could be added
		return nil, nil
	}
	old := s.web[0]
	s.web = append([]*pod(nil), s.web[1:]...)
	if old.requests.Load() == 0 {
		s.tally.failf("pod %v got no request", old.addr)
	}
	s.retire(ctx, old)
	return nil, nil
}

func (s *scene) replaceStreamPod(ctx context.Context) (func() bool, error) {
	p, err := s.newPod()
	if err != nil {
		return nil, err
	}
	old := s.stream[0]
	s.stream = append(append([]*pod(nil), s.stream[1:]...), p)
	s.retire(ctx, old)
	return nil, nil
}

// toggleSocketPod adds a second pod or takes it away; the first has the WebSockets.
func (s *scene) toggleSocketPod(ctx context.Context) (func() bool, error) {
	if len(s.sockets) > 1 {
		s.retire(ctx, s.sockets[1])
		s.sockets = s.sockets[:1:1]
		return nil, nil
	}
	p, err := s.newPod()
	if err == nil {
		s.sockets = append(s.sockets, p)
	}
	return nil, err
}

func (s *scene) reweigh(context.Context) (func() bool, error) {
	s.weight = (s.weight + 30) % 100
	return nil, nil
}

// swapRoutes adds a route and takes the oldest away.
func (s *scene) swapRoutes(context.Context) (func() bool, error) {
	gone, come := s.extra[0], s.extra[1]
	s.extra[0]++
	s.extra[1]++
	return func() bool { return s.status(extraHost(come)) == 200 && s.status(extraHost(gone)) == 503 }, nil
}

// status asks once for the page of a host; 0 = there was no answer.
func (s *scene) status(host string) int {
	l := &lane{s: s, host: host, most: 1}
	defer l.drop()
	a, _ := l.ask("GET / HTTP/1.1\r\nConnection: close\r\n", nil, io.Discard)
	return a.status
}

// renew replaces the certificate of the web.
func (s *scene) renew(context.Context) (func() bool, error) {
	next, err := site.NewKeyPair(hostWeb, false)
	if err != nil {
		return nil, err
	}
	s.keys = next
	block, _ := pem.Decode([]byte(next.Certificate))
	return func() bool {
		c, err := dial("", s.router.HTTPS, true, clientTLS(hostWeb, nil))
		if err != nil {
			return false
		}
		defer c.Close()
		return bytes.Equal(c.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, block.Bytes)
	}, nil
}

// clientTLS is the client's side; it does not verify, since certificates sign themselves.
func clientTLS(host string, cache tls.ClientSessionCache, protocols ...string) *tls.Config {
	return &tls.Config{ServerName: host, InsecureSkipVerify: true, ClientSessionCache: cache, NextProtos: protocols, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
}

// expect is an error unless the answer is 200.
func expect(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", resp.Status)
	}
	return nil
}
