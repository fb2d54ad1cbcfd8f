package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespaces is the folder that namespaces are mounted in, as ip netns has it.
const namespaces = "/run/netns"

// Pod is a network namespace with its addresses: a pod's, a node's or a client's.
type Pod struct {
	Netns string       // path, for setns and OCI runtimes
	IPs   []netip.Addr // IPv4 first, then IPv6
}

// Do calls f on a thread that is inside the namespace. What f starts in further
// goroutines is not; sockets and processes that f makes itself are.
func (p Pod) Do(f func() error) error {
	runtime.LockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot open the network namespace of this thread: %w", err)
	}
	defer func() { _ = unix.Close(own) }()
	there, err := unix.Open(p.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot open network namespace %s: %w", p.Netns, err)
	}
	defer func() { _ = unix.Close(there) }()
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot enter network namespace %s: %w", p.Netns, err)
	}
	err = f()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that it ends with its goroutine.
		return errors.Join(err, fmt.Errorf("cannot leave network namespace %s: %w", p.Netns, back))
	}
	runtime.UnlockOSThread()
	return err
}

// Listen opens a listener inside the namespace. The address is a literal one.
func (p Pod) Listen(network, address string) (net.Listener, error) {
	var listener net.Listener
	err := p.Do(func() (err error) {
		listener, err = net.Listen(network, address)
		return err
	})
	return listener, err
}

// ListenPacket opens a packet socket inside the namespace. The address is a literal one.
func (p Pod) ListenPacket(network, address string) (net.PacketConn, error) {
	var conn net.PacketConn
	err := p.Do(func() (err error) {
		conn, err = net.ListenPacket(network, address)
		return err
	})
	return conn, err
}

// Dial connects from inside the namespace. The address is a literal one of an IP
// address: names would be looked up, and several families tried, in other threads.
func (p Pod) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("cannot dial %q from a network namespace: %w", address, err)
	}
	var conn net.Conn
	err := p.Do(func() (err error) {
		conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// newNamespace makes a namespace that lasts until removeNamespace, and returns its path.
func newNamespace(name string) (string, error) {
	path := filepath.Join(namespaces, name)
	if err := os.MkdirAll(namespaces, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of network namespaces: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		return "", fmt.Errorf("cannot make a mount point of a network namespace: %w", err)
	}
	failed := make(chan error)
	go mountNamespace(path, failed)
	if err := <-failed; err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// mountNamespace makes a namespace on a thread that ends with this goroutine.
func mountNamespace(path string, failed chan<- error) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		failed <- fmt.Errorf("cannot make a network namespace: %w", err)
		return
	}
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		failed <- fmt.Errorf("cannot mount a network namespace on %s: %w", path, err)
		return
	}
	failed <- nil
}

// removeNamespace forgets a namespace. It ends when its last process and socket do.
func removeNamespace(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot unmount network namespace %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot remove a network namespace: %w", err)
	}
	return nil
}
