package reactor

import (
	"io"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

// pipesKept bounds the pool of one loop. The system limits the memory of all pipes of a user
// (pipe-user-pages-soft, 64 MiB); a pipe beyond it stays at 64 KiB and copies slower.
const pipesKept = 16

// pipeDescriptors is what a pipe costs.
const pipeDescriptors = 2

func (e *epollEngine) getPipe() (*pipe, error) {
	if n := len(e.pipes); n > 0 {
		p := e.pipes[n-1]
		e.pipes = e.pipes[:n-1]
		e.unneeded = min(e.unneeded, n-1)
		return p, nil
	}
	if e.budget != nil && !e.budget.spendSpare(pipeDescriptors) {
		return nil, ErrExhausted
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		if e.budget != nil {
			e.budget.restore(pipeDescriptors)
		}
		return nil, err
	}
	// A refusal leaves the default size, which works too.
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize)
	return &pipe{r: fds[0], w: fds[1]}, nil
}

func (e *epollEngine) putPipe(p *pipe, held int) {
	if held == 0 && len(e.pipes) < pipesKept {
		e.pipes = append(e.pipes, p)
		return
	}
	e.closePipe(p)
}

// trimPipes implements splicer. Those used last stay.
func (e *epollEngine) trimPipes() {
	n := min(e.unneeded, len(e.pipes))
	for _, p := range e.pipes[:n] {
		e.closePipe(p)
	}
	e.pipes = slices.Delete(e.pipes, 0, n)
	e.unneeded = len(e.pipes)
}

func (e *epollEngine) closePipe(p *pipe) {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
	if e.budget != nil {
		e.budget.restore(pipeDescriptors)
	}
}

// fill is called with an empty pipe only, so that "again" is about the socket and not about the pipe.
func (e *epollEngine) fill(p *pipe, s engine.Socket, n int) (int, error) {
	n, err := splice(int(s.(*epollSocket).fd), p.w, n)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (e *epollEngine) drain(p *pipe, s engine.Socket, n int, bulk bool) (int, error) {
	sock := s.(*epollSocket)
	if sock.delays != nagleOff {
		sock.prompt()
	}
	sent, err := splice(p.r, int(sock.fd), n)
	if err == engine.ErrAgain {
		if !bulk {
			sock.refused()
		} else if sock.widen() {
			sent, err = splice(p.r, int(sock.fd), n)
		}
	}
	return sent, err
}

// heed implements splicer.
func (e *epollEngine) heed(c *Conn, on bool) {
	fd := c.sock.(*epollSocket).fd
	ev := e.interest(fd)
	if !on {
		ev.Events &^= unix.EPOLLIN
	}
	_ = unix.EpollCtl(e.fd, unix.EPOLL_CTL_MOD, int(fd), &ev) // cannot fail for a registered descriptor
}

// splice never blocks: the pipe and the socket are non-blocking.
func splice(from, to, n int) (int, error) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n),
			unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, engine.ErrAgain
		default:
			return 0, e
		}
	}
}
