package site

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Pipe is what a child says: its end is kept, and its lines are handed out.
type Pipe struct {
	// Gate is held by those who want nobody to read.
	Gate sync.Mutex

	from *os.File
	line func([]byte)
	done chan struct{} // nothing more comes

	mu   sync.Mutex
	tail []byte
}

// tailSize is how many bytes are kept, how long a line may be that is handed out, and the size of a small pipe.
const tailSize = 4 << 10

// newPipe makes a pipe, a small one or as the system makes them, and reads it. The file is its writing end. line may be nil.
func newPipe(small bool, line func([]byte)) (*Pipe, *os.File) {
	from, to, err := os.Pipe()
	Checkf(err, "cannot make a pipe")
	if small {
		Must(unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, tailSize))
	}
	p := &Pipe{from: from, line: line, done: make(chan struct{})}
	go p.run()
	return p, to
}

func (p *Pipe) run() {
	defer close(p.done)
	defer p.from.Close()
	lines := bufio.NewReaderSize(p, tailSize)
	for whole := true; ; {
		text, err := lines.ReadSlice('\n')
		p.mu.Lock()
		if p.tail = append(p.tail, text...); len(p.tail) > tailSize {
			p.tail = append(p.tail[:0], p.tail[len(p.tail)-tailSize:]...)
		}
		p.mu.Unlock()
		if p.line != nil && whole && err == nil {
			p.line(text)
		}
		if whole = err == nil; err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// Read reads while the gate is open.
func (p *Pipe) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.Gate.Lock()
	p.Gate.Unlock() //nolint:staticcheck // it waits for its turn and does nothing with it
	return n, err
}

// Close has nobody read any more: the child gets an error when it writes.
func (p *Pipe) Close() { _ = p.from.Close() }

// Tail is the end of what was read, at most 4 KiB.
func (p *Pipe) Tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(string(p.tail))
}

// Waiting is how many bytes nobody has read.
func (p *Pipe) Waiting() (n int) {
	raw := Must(p.from.SyscallConn())
	Check(raw.Control(func(fd uintptr) { n = Must(unix.IoctlGetInt(int(fd), unix.TIOCINQ)) }))
	return n
}
