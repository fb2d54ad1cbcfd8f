package load

import (
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// fullListener is a listener that makes no connection until one is accepted: SYNs are dropped, tcp(7).
func fullListener(t *testing.T) (fd int, addr *unix.SockaddrInet4) {
	t.Helper()
	socket := func(flags int) int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	fd = socket(0)
	err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr = name.(*unix.SockaddrInet4)
	for range 16 {
		client := socket(unix.SOCK_NONBLOCK)
		_ = unix.Connect(client, addr)
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(client), Events: unix.POLLOUT}}, 100); n == 0 && err == nil {
			return fd, addr
		}
	}
	t.Fatal("the listener takes whatever comes")
	return 0, nil
}

// TestSignalsDoNotEndAConnect: the runtime preempts threads by SIGURG, which comes while a connection is being made.
func TestSignalsDoNotEndAConnect(t *testing.T) {
	listener, addr := fullListener(t)
	thread, result := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		result <- site.Try(func() {
			fd, _ := dial(netip.AddrPortFrom(netip.AddrFrom4(addr.Addr), uint16(addr.Port)), nil)
			_ = unix.Close(fd)
		})
	}()
	tid, ticks := <-thread, time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for range 20 {
		<-ticks.C
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
	}
	for {
		select {
		case err := <-result:
			if err != nil {
				t.Error(err)
			}
			return
		case <-ticks.C:
			if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}, 0); n > 0 {
				fd, _, err := unix.Accept(listener)
				if err != nil {
					t.Fatal(err)
				}
				_ = unix.Close(fd)
			}
		}
	}
}
