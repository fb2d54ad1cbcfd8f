package reactor

import "errors"

var (
	// ErrAgain is returned by Layer.Read when it needs more bytes from the wire. It is no failure.
	ErrAgain = errors.New("no data for now")
	// ErrInputFull closes a Conn whose handler consumed nothing of a full input buffer.
	ErrInputFull = errors.New("input buffer full and nothing consumed")
	// ErrDialTimeout closes a dialled Conn that was not connected in time.
	ErrDialTimeout = errors.New("connect timed out")
	// ErrWriteTimeout closes a Conn whose Close could not flush the queue in time.
	ErrWriteTimeout = errors.New("peer took no bytes before the write timeout")
	// ErrPanicked closes the Conns that a contained panic may have left in disorder; see Config.Panicked.
	ErrPanicked = errors.New("a handler panicked")
	// ErrClosed is the reason of Conns that were open when their loop ended, and the answer of calls that come too late.
	ErrClosed = errors.New("closed")
	// ErrNoSplice is returned by Splice when the kernel cannot copy between these two Conns.
	ErrNoSplice = errors.New("connections cannot be spliced")
	// ErrNoInherit is returned where listening sockets cannot be given to another process: there is no epoll.
	ErrNoInherit = errors.New("listening sockets cannot be inherited on this system")
)

// errAgain is what sockets return for "would block".
var errAgain = ErrAgain
