package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Predecessor is the process whose sockets were handed to this one. Its methods are for one goroutine, but TakeSockets for any.
type Predecessor struct {
	conn      *net.UnixConn
	taking    sync.Mutex
	listeners []Listener // not taken yet; guarded by taking
}

// Connect takes copies of the listening sockets of the process that serves path. It returns nil without an error when there
// is none: nothing at path, or what is left of a process that has ended.
func Connect(path string) (*Predecessor, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take over listening sockets from %s: %w", path, err)
	}
	p := &Predecessor{conn: c}
	if err := p.receive(); err != nil {
		p.Close()
		return nil, fmt.Errorf("cannot take over listening sockets from %s: %w", path, err)
	}
	return p, nil
}

func (p *Predecessor) receive() error {
	if err := p.conn.SetReadDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	hello, sockets, err := receive(p.conn)
	Listener{Sockets: sockets}.Close() // there are none
	if err != nil {
		return err
	}
	if hello.Version != version {
		return fmt.Errorf("it speaks version %d of the protocol, this process %d", hello.Version, version)
	}
	for range hello.Listeners {
		m, sockets, err := receive(p.conn)
		p.listeners = append(p.listeners, Listener{Name: m.Listener, Sockets: sockets})
		if err != nil {
			return err
		}
	}
	return nil
}

// TakeSockets returns the sockets of a listener, which now are the caller's, or nil when the predecessor has none of that name.
func (p *Predecessor) TakeSockets(name string) []int {
	p.taking.Lock()
	defer p.taking.Unlock()
	for i, l := range p.listeners {
		if l.Name == name {
			p.listeners[i].Sockets = nil
			return l.Sockets
		}
	}
	return nil
}

// TakeListener is TakeSockets for a listener of one socket; nil without an error when the predecessor has none of that name.
func (p *Predecessor) TakeListener(name string) (net.Listener, error) {
	fds := p.TakeSockets(name)
	if len(fds) == 0 {
		return nil, nil
	}
	file := os.NewFile(uintptr(fds[0]), name)
	ln, err := net.FileListener(file)
	return ln, errors.Join(err, file.Close())
}

// Ready says that this process accepts connections. It returns when the predecessor has stopped accepting and path is free,
// which is so too when it has ended meanwhile, and closes everything that was not taken. An error, such as that of ctx, says
// that the predecessor may still accept.
func (p *Predecessor) Ready(ctx context.Context) error {
	defer p.Close()
	err := p.conn.SetReadDeadline(time.Now().Add(replyTime))
	stop := context.AfterFunc(ctx, func() { _ = p.conn.SetReadDeadline(time.Unix(1, 0)) }) // ends what is under way
	defer stop()
	if err == nil {
		err = p.ready()
	}
	switch {
	case err == nil || isGone(err):
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return fmt.Errorf("cannot tell the predecessor that this process accepts connections: %w", err)
}

func (p *Predecessor) ready() error {
	if err := send(p.conn, message{Say: sayReady}, nil); err != nil {
		return err
	}
	m, none, err := receive(p.conn)
	Listener{Sockets: none}.Close()
	if err == nil && m.Say != sayReleased {
		err = fmt.Errorf("it said %q", m.Say)
	}
	return err
}

// isGone reports an error that says that the other process has ended.
func isGone(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// Close ends the conversation and closes what was not taken. The predecessor, unless it got Ready, goes on as before.
func (p *Predecessor) Close() {
	p.taking.Lock()
	defer p.taking.Unlock()
	for _, l := range p.listeners {
		l.Close()
	}
	p.listeners = nil
	_ = p.conn.Close() // nothing is left to say
}
