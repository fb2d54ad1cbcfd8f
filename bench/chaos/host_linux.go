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
	"strings"
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
				return fmt.Sprintf("%.0f lines lost to ENOSPC", failed), failed > 0 && strings.Contains(s.router.Err.Tail(), "no space left")
			}},
		{name: "log readers hang", pods: 2, lasts: 4 * time.Second, begin: hangReaders, end: wakeReaders, want: bounds{served: 1, returns: 20 * time.Second},
			present: func(s *stage) (string, bool) {
				n := &s.notes
				return fmt.Sprintf("%d and %d bytes unread, %d threads in write", n.waiting[0], n.waiting[1], n.writing), min(n.waiting[0], n.waiting[1]) > 0 && n.writing == 2
			}},
		{name: "manifests gone", pods: 1, begin: func(s *stage) {
			rename(s.router.Dir, s.router.Dir+"-away")
		}, end: func(s *stage) {
			rename(s.router.Dir+"-away", s.router.Dir)
			s.notes.problems = s.router.Samples(s.Context)["turnout_source_problems"]
		}, want: bounds{changes: true, served: 1}, present: func(s *stage) (string, bool) {
			return fmt.Sprintf("problems of the source: %.0f", s.notes.problems), s.notes.problems > s.counts[0]["turnout_source_problems"]
		}},
		{name: "router stopped", pods: 1, timeout: serverTimeout, begin: func(s *stage) { s.router.Signal(syscall.SIGSTOP) }, end: func(s *stage) {
			s.notes.state = s.router.state()
			s.router.Signal(syscall.SIGCONT)
		}, want: bounds{changes: true, served: 1, slowest: patience, neighbor: patience}, present: func(s *stage) (string, bool) {
			return "state " + s.notes.state, s.notes.state == "T"
		}},
		{name: "log readers gone", pods: 2, begin: func(s *stage) {
			s.router.Out.Close()
			s.router.Err.Close()
			s.noise()
		}, end: hush, want: bounds{served: 1, returns: 20 * time.Second}, present: func(s *stage) (string, bool) {
			failed := s.delta("turnout_access_log_failed_total")
			return fmt.Sprintf("%.0f lines lost to EPIPE", failed), failed > 0
		}},
	}
}

func rename(from, to string) { site.Checkf(os.Rename(from, to), "cannot move the manifests") }

// undo ends what the beginning of a fault left behind.
func undo(s *stage) {
	if s.notes.undo != nil { // else there was no beginning
		s.notes.undo()
	}
	for _, c := range s.notes.conns {
		c.Close()
	}
}

// thirdParty is a connection from an address that no other client has. It is closed by undo.
func (s *stage) thirdParty() *net.TCPConn {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(thirdParty.addr(), 0)), Timeout: patience}
	c := site.Must(d.Dial("tcp4", s.router.HTTP)).(*net.TCPConn)
	s.notes.conns = append(s.notes.conns, c)
	return c
}

// state is the letter that the kernel has for what the process does.
func (r *router) state() string {
	_, rest, _ := strings.Cut(r.Proc("stat"), ") ")
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
func (s *stage) noise() {
	s.pods[0].Down()
	s.router.Write("noise.yaml", strings.Repeat("---\n{kind: Route, spec: }}\n", 200))
}

// hush undoes noise.
func hush(s *stage) {
	site.Check(os.Remove(filepath.Join(s.router.Dir, "noise.yaml")))
	s.pods[0].Up()
}

func hangReaders(s *stage) {
	s.router.Out.Gate.Lock()
	s.router.Err.Gate.Lock()
	s.noise()
}

func wakeReaders(s *stage) {
	s.notes.waiting, s.notes.writing = [2]int{s.router.Out.Waiting(), s.router.Err.Waiting()}, s.router.writing()
	s.router.Out.Gate.Unlock()
	s.router.Err.Gate.Unlock()
	hush(s)
}

// lorises is how many connections send a head that never ends.
const lorises = 200

// slowLoris sends a byte of a head now and then over each of many connections, and counts those that get an answer, which ends them.
func slowLoris(s *stage) {
	ctx, cancel := context.WithCancel(s.Context)
	s.notes.undo = cancel
	for range lorises {
		c := s.thirdParty()
		go drip(ctx, c, s.fault.host())
		go func() {
			status := make([]byte, 12)
			if _, err := io.ReadFull(c, status); err == nil && string(status) == "HTTP/1.1 408" {
				s.notes.answered.Add(1)
			}
		}()
	}
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
func noDescriptors(s *stage) {
	open := s.router.Descriptors()
	limit, free := 0, 0
	for ; free < spare; limit++ {
		if !open[limit] {
			free++
		}
	}
	pid := s.router.PID()
	site.Checkf(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &s.notes.limit), "cannot read the limit of the router")
	low := unix.Rlimit{Cur: uint64(limit), Max: s.notes.limit.Max}
	site.Checkf(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &low, nil), "cannot lower the limit of the router")
	ctx, cancel := context.WithCancel(s.Context)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for site.Pause(ctx, 20*time.Millisecond) == nil {
			_ = site.Try(s.watchBacklog) // without a process others tell
		}
	}()
	s.notes.undo = func() {
		cancel()
		<-watched
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &s.notes.limit, nil) // if it fails nothing recovers, which is reported
	}
}

// watchBacklog counts the connections that nobody accepts.
func (s *stage) watchBacklog() {
	_, backlog := s.router.sockets()
	if s.notes.looks++; backlog > 0 {
		s.notes.starved++
		s.notes.backlog = max(s.notes.backlog, backlog)
	}
}

func (s *stage) filler() string { return filepath.Join(filepath.Dir(s.router.accessLog), "filler") }

// fillDisk leaves the file system of the access log no byte.
func fillDisk(s *stage) {
	f := site.Must(os.Create(s.filler()))
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		_, err := f.Write(block)
		if errors.Is(err, syscall.ENOSPC) {
			block, err = block[:len(block)/2], nil
		}
		site.Checkf(err, "cannot fill the disk")
	}
}

func emptyDisk(s *stage) { site.Checkf(os.Remove(s.filler()), "cannot empty the disk") }

// logGoesOn: lines are written again, and each of them is whole.
func logGoesOn(s *stage) error {
	torn, after := 0, 0
	for line := range bytes.Lines(site.Must(os.ReadFile(s.router.accessLog))) {
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
