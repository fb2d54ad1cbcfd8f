package reactor

import (
	"bytes"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitClock tells how long a thread has waited for a processor.
type waitClock struct {
	fd  int // of its schedstat; 0 = not open
	buf [64]byte
}

// open begins with the calling thread. It says false if the system keeps no account.
func (w *waitClock) open() bool {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	w.fd = fd
	return true
}

// waited is that time until now in nanoseconds, up to the last time that it got one.
func (w *waitClock) waited() int64 {
	n, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(w.fd), uintptr(unsafe.Pointer(&w.buf)), uintptr(len(w.buf)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return secondNumber(w.buf[:n])
}

func (w *waitClock) close() {
	if w.fd > 0 {
		closeFD(w.fd)
		w.fd = 0
	}
}

// secondNumber is the second of the numbers in a line, 0 if there is none: the time on a processor, the time waiting for one,
// how often it got one.
func secondNumber(line []byte) (n int64) {
	_, rest, _ := bytes.Cut(line, []byte{' '})
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// processor is the one that the calling thread runs on.
func processor() int32 {
	var n uint32
	_, _, _ = syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&n)), 0, 0)
	return int32(n)
}

// bindTo has the calling thread run on one processor only, if the system allows.
func bindTo(processor int32) {
	var set unix.CPUSet
	set.Set(int(processor))
	_ = unix.SchedSetaffinity(0, &set)
}

// rest sleeps without telling the runtime, whose monitor would look around every 20 microseconds for as long as somebody does
// that. A collection that wants everybody to stop ends it by a signal.
func rest(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}
