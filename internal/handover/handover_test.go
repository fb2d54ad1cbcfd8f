package handover

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// rig is a predecessor that listens on one TCP port.
type rig struct {
	t        *testing.T
	path     string
	ln       *net.TCPListener
	server   *Server
	released atomic.Int32
	errs     chan error
	refuse   atomic.Bool // Listeners fails
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "handover"), errs: make(chan error, 16)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	r.ln = ln.(*net.TCPListener)
	r.server, err = Serve(r.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.server.Close)
	return r
}

func (r *rig) config() Config {
	return Config{
		Path: r.path,
		Listeners: func() ([]Listener, error) {
			if r.refuse.Load() {
				return nil, errors.New("no sockets today")
			}
			return []Listener{{Name: "http", Sockets: []int{r.copy(), r.copy()}}, {Name: "admin", Sockets: []int{r.copy()}}, {Name: "none"}}, nil
		},
		Release: func() { r.released.Add(1) },
		Log:     func(err error) { r.errs <- err },
	}
}

func (r *rig) copy() int {
	raw, err := r.ln.SyscallConn()
	if err != nil {
		r.t.Fatal(err)
	}
	fd := -1
	if err := raw.Control(func(s uintptr) { fd, err = syscall.Dup(int(s)) }); err != nil {
		r.t.Fatal(err)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return fd
}

func (r *rig) connect() *Predecessor {
	r.t.Helper()
	p, err := Connect(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	if p == nil {
		r.t.Fatal("no predecessor")
	}
	return p
}

// serves says that a socket of the descriptor accepts for addr.
func serves(t *testing.T, fd int, addr net.Addr) {
	t.Helper()
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if ln.Addr().String() != addr.String() {
		t.Errorf("listens on %v, want %v", ln.Addr(), addr)
	}
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got.Close()
}

func TestHandOver(t *testing.T) {
	r := newRig(t)
	if info, err := os.Stat(r.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	p := r.connect()
	sockets := p.TakeSockets("http")
	if len(sockets) != 2 || p.TakeSockets("http") != nil || p.TakeSockets("none") != nil || p.TakeSockets("other") != nil {
		t.Fatalf("sockets %v", sockets)
	}
	if r.released.Load() != 0 {
		t.Error("released before the successor was ready")
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-r.server.Released()
	if r.released.Load() != 1 {
		t.Errorf("released %d times", r.released.Load())
	}
	next, err := Serve(r.config()) // the path is free at once
	if err != nil {
		t.Fatal(err)
	}
	r.server.Close() // must not take the path from the successor
	if p, err := Connect(r.path); p == nil {
		t.Errorf("the successor has no predecessor's role: %v", err)
	} else {
		p.Close()
	}
	next.Close()
	if p, err := Connect(r.path); p != nil || err != nil {
		t.Errorf("after the end: %v, %v", p, err)
	}
	addr := r.ln.Addr()
	r.ln.Close()
	for _, fd := range sockets {
		serves(t, fd, addr)
	}
}

// TestSuccessorGivesUp ends a successor before it is ready: nothing has happened.
func TestSuccessorGivesUp(t *testing.T) {
	r := newRig(t)
	for range 3 {
		p := r.connect()
		p.Close()
		if err := <-r.errs; !strings.Contains(err.Error(), "the successor did not get ready") {
			t.Errorf("logged %v", err)
		}
	}
	if r.released.Load() != 0 {
		t.Error("released")
	}
	p := r.connect()
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOneSuccessorAtATime(t *testing.T) {
	r := newRig(t)
	first := r.connect()
	if p, err := Connect(r.path); p != nil || err == nil || !strings.HasSuffix(err.Error(), "another process is taking over") {
		t.Errorf("second: %v, %v", p, err)
	}
	if err := first.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPredecessorRefuses(t *testing.T) {
	r := newRig(t)
	r.refuse.Store(true)
	p, err := Connect(r.path)
	if p != nil || err == nil || !strings.HasSuffix(err.Error(), "no sockets today") {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPredecessorEnds closes the old process while the successor prepares itself: the path is free, and the sockets live on.
func TestPredecessorEnds(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	sockets := p.TakeSockets("admin")
	r.server.Close()
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	r.ln.Close()
	serves(t, sockets[0], r.ln.Addr())
}

// TestPredecessorHangs: waiting for a predecessor that says nothing can be stopped.
func TestPredecessorHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "handover")
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c, err := ln.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		_ = send(c, message{Version: version}, nil)
		if m, _, err := receive(c); err != nil || m.Say != sayReady {
			t.Errorf("%+v, %v", m, err)
		}
		cancel()
		_, _, _ = receive(c) // until the successor is gone
		c.Close()
	}()
	p, err := Connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestForeignPeers(t *testing.T) {
	r := newRig(t)
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: r.path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-r.errs; !strings.Contains(err.Error(), "not a message") {
		t.Errorf("logged %v", err)
	}
	c.Close()

	other := filepath.Join(t.TempDir(), "other")
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: other, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for _, text := range []string{`{"version":7}`, `what`} {
			c, err := ln.AcceptUnix()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	}()
	for _, want := range []string{"it speaks version 7 of the protocol, this process 1", "not a message of this protocol"} {
		if p, err := Connect(other); p != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %s", p, err, want)
		}
	}
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	r := newRig(t)
	if _, err := Serve(r.config()); err == nil || !strings.HasSuffix(err.Error(), "another process serves it") {
		t.Errorf("a path in use: %v", err)
	}
	cfg := r.config()
	cfg.Path = filepath.Join(r.path, "below", "a", "file")
	if _, err := Serve(cfg); err == nil || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("an impossible path: %v", err)
	}
	if _, err := Serve(Config{}); err == nil {
		t.Error("an empty configuration is taken")
	}
	// What is left of a process that was killed is no obstacle.
	stale := filepath.Join(t.TempDir(), "stale")
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: stale, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	if p, err := Connect(stale); p != nil || err != nil {
		t.Errorf("stale: %v, %v", p, err)
	}
	cfg.Path = stale
	s, err := Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
