package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// hostFaults are those of the machine that the router runs on, and of its clients.
func hostFaults() []*fault {
	return []*fault{
		{name: "slow loris", pods: 1, lasts: headTimeout + 2*time.Second, begin: slowLoris, end: undo, want: bounds{served: 1},
			present: func(s *stage) (string, bool) {
				n := s.notes.answered.Load()
				return fmt.Sprintf("%d attackers, %d got 408", lorises, n), n >= lorises
			}},
		{name: "no descriptors", pods: 1, asks: asking{fresh: true, clients: 24}, begin: noDescriptors, end: undo,
			want: bounds{changes: true, allowed: []string{"503"}, slowest: patience, recovers: 3 * time.Second},
			present: func(s *stage) (string, bool) {
				n := &s.notes
				return fmt.Sprintf("%d connections waited, in %d of %d looks", n.backlog, n.starved, n.looks), n.starved > 2
			}},
		{name: "log disk full", pods: 1, root: true, begin: fillDisk, end: emptyDisk, want: bounds{served: 1, check: logGoesOn},
			present: func(s *stage) (string, bool) {
				failed := s.delta("turnout_access_log_failed_total")
				return fmt.Sprintf("%.0f lines lost to ENOSPC", failed), failed > 0 && strings.Contains(s.router.err.last(), "no space left")
			}},
		{name: "log readers hang", pods: 2, lasts: 4 * time.Second, begin: hangReaders, end: wakeReaders, want: bounds{served: 1, returns: 20 * time.Second},
			present: func(s *stage) (string, bool) {
				n := &s.notes
				return fmt.Sprintf("%d and %d bytes unread, %d threads in write", n.waiting[0], n.waiting[1], n.writing), min(n.waiting[0], n.waiting[1]) > 0 && n.writing == 2
			}},
		{name: "manifests gone", pods: 1, begin: func(s *stage) error {
			return rename(s.router.manifests, s.router.manifests+"-away")
		}, end: func(s *stage) error {
			m, err := s.router.Samples(s.Context)
			s.notes.problems = m["turnout_source_problems"]
			return errors.Join(err, rename(s.router.manifests+"-away", s.router.manifests))
		}, want: bounds{changes: true, served: 1}, present: func(s *stage) (string, bool) {
			return fmt.Sprintf("problems of the source: %.0f", s.notes.problems), s.notes.problems > s.counts[0]["turnout_source_problems"]
		}},
		{name: "router stopped", pods: 1, timeout: serverTimeout, begin: func(s *stage) error { return s.router.Signal(syscall.SIGSTOP) }, end: func(s *stage) error {
			s.notes.state = s.router.state()
			return s.router.Signal(syscall.SIGCONT)
		}, want: bounds{changes: true, served: 1, slowest: patience, neighbor: patience}, present: func(s *stage) (string, bool) {
			return "state " + s.notes.state, s.notes.state == "T"
		}},
		{name: "log readers gone", pods: 2, begin: func(s *stage) error {
			return errors.Join(s.router.out.f.Close(), s.router.err.f.Close(), s.noise())
		}, end: hush, want: bounds{served: 1, returns: 20 * time.Second}, present: func(s *stage) (string, bool) {
			failed := s.delta("turnout_access_log_failed_total")
			return fmt.Sprintf("%.0f lines lost to EPIPE", failed), failed > 0
		}},
	}
}

func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("cannot move the manifests: %w", err)
	}
	return nil
}

// undo ends what the beginning of a fault left behind.
func undo(s *stage) error {
	if s.notes.undo != nil { // else there was no beginning
		s.notes.undo()
	}
	return nil
}

// state is the letter that the kernel has for what the process does.
func (r *router) state() string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID()))
	if err != nil {
		return err.Error()
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// writing is how many threads wait until a pipe takes what they write.
func (r *router) writing() (n int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", r.PID())) // the pattern is good
	for _, t := range threads {
		if place, err := os.ReadFile(t); err == nil && strings.Contains(string(place), "pipe_write") {
			n++
		}
	}
	return n
}

// noise gives the router much to log: manifests that cannot be used, and a pod that cannot be reached.
func (s *stage) noise() error {
	s.pods[0].down()
	return s.router.Write("noise.yaml", strings.Repeat("---\n{kind: Route, spec: }}\n", 200))
}

// hush undoes noise.
func hush(s *stage) error {
	return errors.Join(os.Remove(filepath.Join(s.router.manifests, "noise.yaml")), s.pods[0].up(s.pods[0].addr))
}

func hangReaders(s *stage) error {
	s.router.out.gate.Lock()
	s.router.err.gate.Lock()
	return s.noise()
}

func wakeReaders(s *stage) error {
	s.notes.waiting, s.notes.writing = [2]int{s.router.out.waiting(), s.router.err.waiting()}, s.router.writing()
	s.router.out.gate.Unlock()
	s.router.err.gate.Unlock()
	return hush(s)
}

// lorises is how many connections send a head that never ends.
const lorises = 200

// slowLoris sends a byte of a head now and then over each of many connections, and counts those that are told to stop.
func slowLoris(s *stage) error {
	var conns []net.Conn
	ctx, cancel := context.WithCancel(s.Context)
	var all sync.WaitGroup
	s.notes.undo = func() {
		cancel()
		for _, c := range conns {
			c.Close()
		}
		all.Wait()
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(thirdParty.addr(), 0)), Timeout: patience}
	for range lorises {
		c, err := d.Dial("tcp4", s.router.HTTP)
		if err != nil {
			return fmt.Errorf("cannot connect: %w", err)
		}
		conns = append(conns, c)
		all.Go(func() { drip(ctx, c, s.fault.host()) })
		all.Go(func() {
			status := make([]byte, 12)
			if _, err := io.ReadFull(c, status); err == nil && string(status) == "HTTP/1.1 408" {
				s.notes.answered.Add(1)
			}
		})
	}
	return nil
}

// drip sends the beginning of a request a byte at a time.
func drip(ctx context.Context, c net.Conn, host string) {
	const text = "GET / HTTP/1.1\r\nHost: %s\r\nX: "
	if _, err := fmt.Fprintf(c, text, host); err != nil {
		return
	}
	for site.Pause(ctx, 100*time.Millisecond) == nil {
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
	}
}

// spare is how many descriptors the router can still open.
const spare = 2

// noDescriptors lowers the limit of the running router, so that hardly any number is free below it, and watches who waits.
func noDescriptors(s *stage) error {
	open, err := s.router.descriptors()
	if err != nil {
		return err
	}
	limit, free := 0, 0
	for ; free < spare; limit++ {
		if !open[limit] {
			free++
		}
	}
	if err := unix.Prlimit(s.router.PID(), unix.RLIMIT_NOFILE, nil, &s.notes.limit); err != nil {
		return fmt.Errorf("cannot read the limit of the router: %w", err)
	}
	low := unix.Rlimit{Cur: uint64(limit), Max: s.notes.limit.Max}
	if err := unix.Prlimit(s.router.PID(), unix.RLIMIT_NOFILE, &low, nil); err != nil {
		return fmt.Errorf("cannot lower the limit of the router: %w", err)
	}
	ctx, cancel := context.WithCancel(s.Context)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for site.Pause(ctx, 20*time.Millisecond) == nil {
			s.watchBacklog()
		}
	}()
	s.notes.undo = func() {
		cancel()
		<-watched
		_ = unix.Prlimit(s.router.PID(), unix.RLIMIT_NOFILE, &s.notes.limit, nil) // if it fails nothing recovers, which is told
	}
	return nil
}

// watchBacklog counts the connections that nobody accepts.
func (s *stage) watchBacklog() {
	_, backlog, err := s.router.sockets()
	if err != nil {
		return // the process is gone, which others tell
	}
	if s.notes.looks++; backlog > 0 {
		s.notes.starved++
		s.notes.backlog = max(s.notes.backlog, backlog)
	}
}

// descriptors are the numbers that are in use.
func (r *router) descriptors() (map[int]bool, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.PID()))
	if err != nil {
		return nil, fmt.Errorf("cannot see descriptors: %w", err)
	}
	open := make(map[int]bool, len(list))
	for _, e := range list {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			open[n] = true
		}
	}
	return open, nil
}

func (s *stage) filler() string { return filepath.Join(filepath.Dir(s.router.accessLog), "filler") }

// fillDisk leaves the file system of the access log no byte.
func fillDisk(s *stage) error {
	f, err := os.Create(s.filler())
	if err != nil {
		return fmt.Errorf("cannot fill the disk: %w", err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err = f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block, err = block[:len(block)/2], nil
		}
		if err != nil {
			return fmt.Errorf("cannot fill the disk: %w", err)
		}
	}
	return nil
}

func emptyDisk(s *stage) error {
	if err := os.Remove(s.filler()); err != nil {
		return fmt.Errorf("cannot empty the disk: %w", err)
	}
	return nil
}

// logGoesOn: lines are written again, and each of them is whole.
func logGoesOn(s *stage) error {
	text, err := os.ReadFile(s.router.accessLog)
	if err != nil {
		return fmt.Errorf("cannot read the access log: %w", err)
	}
	torn, after := 0, 0
	for line := range bytes.Lines(text) {
		var entry struct {
			TS   time.Time
			Host string
		}
		if json.Unmarshal(line, &entry) != nil {
			torn++
		} else if entry.Host == s.fault.host() && entry.TS.After(s.ended) {
			after++
		}
	}
	if torn > 1 || after == 0 {
		return fmt.Errorf("of the access log %d lines are torn, and %d came after the disk had room again", torn, after)
	}
	return nil
}
