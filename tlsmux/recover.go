package tlsmux

import (
	"errors"
	"runtime/debug"
)

// ErrPanicked: something panicked that was computed for this connection alone, see WorkersConfig.Panicked.
var ErrPanicked = errors.New("panic in a TLS handshake")

// recovered makes ErrPanicked of a panic, if that is wanted. It is deferred by functions that compute something for one
// connection and change nothing that others share, but under locks of their own.
func (w *Workers) recovered(err *error) {
	if w.panicked == nil {
		return
	}
	if v := recover(); v != nil {
		*err = ErrPanicked
		w.panicked(v, debug.Stack())
	}
}
