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

// read returns how long it ran until now, and how long it waited until it got its processor last, in nanoseconds.
func (w *waitClock) read() (ran, waited int64) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(w.fd), uintptr(unsafe.Pointer(&w.buf)), uintptr(len(w.buf)), 0, 0, 0)
	if errno != 0 {
		return 0, 0
	}
	return twoNumbers(w.buf[:n])
}

func (w *waitClock) close() {
	if w.fd > 0 {
		closeFD(w.fd)
		w.fd = 0
	}
}

// twoNumbers are the first of a line, 0 if they are not there: the time on a processor, the time waiting for one.
func twoNumbers(line []byte) (first, second int64) {
	a, rest, _ := bytes.Cut(line, []byte{' '})
	b, _, _ := bytes.Cut(rest, []byte{' '})
	return decimal(a), decimal(b)
}

// decimal is the number that digits begins with.
func decimal(digits []byte) (n int64) {
	for _, c := range digits {
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
