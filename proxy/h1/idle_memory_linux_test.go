//go:build !race

package h1_test

import (
	"bytes"
	"runtime"
	"syscall"
	"testing"

	"turnout/internal/testkit"
)

// TestIdleConnectionMemory: half a KiB of resident memory is all that a connection takes between two requests. A tenth of
// that is what the allocator adds; make bench-idle measures all of it.
func TestIdleConnectionMemory(t *testing.T) {
	const conns, most = 400, 512 * 9 / 10
	r := testkit.StartRouter(t, 1, nil)
	r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")))
	open := make([]int, 2*conns)
	defer func() {
		for _, fd := range open {
			_ = syscall.Close(fd)
		}
	}()
	use := func(fds []int) {
		for i := range fds {
			fds[i] = askOnce(t, int(r.Addr.Port()))
		}
	}
	use(open[:conns]) // what the first ones bring into being stays for all
	for _, fd := range open[:conns] {
		sendOnce(t, fd) // and so does what many of them bring into being at the same time
	}
	for _, fd := range open[:conns] {
		receiveOnce(t, fd)
	}
	before := heapInUse()
	use(open[conns:])
	each := (heapInUse() - before) / conns
	if each > most {
		t.Errorf("an idle connection takes %d bytes of the heap; want at most %d", each, most)
	}
}

// askOnce opens a connection without anything of it on the heap, and has one request answered.
func askOnce(t *testing.T, port int) (fd int) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatalf("cannot open a connection: %v", err)
	}
	sendOnce(t, fd)
	receiveOnce(t, fd)
	return fd
}

// sendOnce sends a request.
func sendOnce(t *testing.T, fd int) {
	if _, err := syscall.Write(fd, []byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")); err != nil {
		t.Fatalf("cannot use a connection: %v", err)
	}
}

// receiveOnce reads its answer.
func receiveOnce(t *testing.T, fd int) {
	var p [1 << 10]byte
	for n := 0; !bytes.HasSuffix(p[:n], []byte("\r\n\r\nok")); {
		k, err := syscall.Read(fd, p[n:])
		if k <= 0 || err != nil {
			t.Fatalf("cannot use a connection: it ended, %v", err)
		}
		n += k
	}
}

// heapInUse is how many bytes are in use.
func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
