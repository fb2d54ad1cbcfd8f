package reactor

import (
	"errors"
	"syscall"

	"turnout/internal/reactor/engine"
)

var (
	// ErrAgain is returned by Layer.Read when it needs more bytes from the wire. It is no failure.
	ErrAgain = engine.ErrAgain
	// ErrInputFull closes a Conn whose handler consumed nothing of a full input buffer.
	ErrInputFull = errors.New("input buffer full and nothing consumed")
	// ErrDialTimeout closes a dialled Conn that was not connected in time.
	ErrDialTimeout = errors.New("connect timed out")
	// ErrWriteTimeout closes a Conn whose Close could not flush the queue in time.
	ErrWriteTimeout = errors.New("peer took no bytes before the write timeout")
	// ErrUnread closes a Conn after CloseDiscarding whose peer goes on sending beyond the bounds of that.
	ErrUnread = errors.New("peer went on sending what nobody reads")
	// ErrPanicked closes the Conns that a recovered panic may have left in disorder; see Config.Panicked.
	ErrPanicked = errors.New("a handler panicked")
	// ErrClosed is the reason of Conns that were open when their loop ended, and the answer of calls that come too late.
	ErrClosed = errors.New("closed")
	// ErrExhausted closes a dialled Conn for which there was no descriptor in the Budget. See Exhausted.
	ErrExhausted = errors.New("no descriptor left for a connection")
	// ErrNoSplice is returned by Splice when the kernel cannot copy between these two Conns.
	ErrNoSplice = errors.New("connections cannot be spliced")
	// ErrNoInherit is returned where listening sockets cannot be given to another process: there is no epoll.
	ErrNoInherit = errors.New("listening sockets cannot be inherited on this system")
)

// Exhausted reports that a Conn could not be made because this machine or process has no descriptor, memory or port left for
// it, which says nothing about its peer.
func Exhausted(err error) bool {
	if errors.Is(err, ErrExhausted) {
		return true
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL:
		return true
	}
	return false
}
