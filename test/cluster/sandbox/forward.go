package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Forward is a TCP port of this machine that leads into the sandbox.
type Forward struct {
	Listener net.Listener // on this machine; closed at the end
	To       string       // IP address and port inside
}

// forward serves forwards to the network namespace of a process, until stop is called.
// Connections that are open then end with this process.
func forward(forwards []Forward, pid int) (stop func(), err error) {
	if len(forwards) == 0 {
		return func() {}, nil
	}
	own, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the network namespace of this process: %w", err)
	}
	inside, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the network namespace of the sandbox: %w", err), unix.Close(own))
	}
	for _, f := range forwards {
		go serveForward(f, own, inside)
	}
	return func() {
		for _, f := range forwards {
			_ = f.Listener.Close()
		}
	}, nil
}

func serveForward(f Forward, own, inside int) {
	for {
		client, err := f.Listener.Accept()
		if err != nil {
			return
		}
		go splice(client, f.To, own, inside)
	}
}

// splice connects a client to an address inside and copies until both sides have ended.
func splice(client net.Conn, to string, own, inside int) {
	defer client.Close()
	server, err := dialInside(to, own, inside)
	if err != nil {
		return // the client sees its connection end, as from a server that is down
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(server, client)
	}()
	copyHalf(client, server)
	<-done
}

func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// dialInside connects on a thread that is inside for that time.
func dialInside(to string, own, inside int) (net.Conn, error) {
	runtime.LockOSThread()
	if err := unix.Setns(inside, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("cannot enter the network namespace of the sandbox: %w", err)
	}
	conn, err := net.Dial("tcp", to)
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that it ends with its goroutine.
		return nil, errors.Join(err, back)
	}
	runtime.UnlockOSThread()
	return conn, err
}
