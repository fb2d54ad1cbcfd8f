package tlsmux

import (
	"errors"
	"runtime/debug"
)

// ErrPanicked: something panicked that was computed for this connection alone, see WorkersConfig.Panicked.
var ErrPanicked = errors.New("panic in a TLS handshake")

// contained returns what f returns, or ErrPanicked if it panics. f computes something for one connection and changes nothing
// that others share, but under locks of their own.
func (w *Workers) contained(f func() error) (err error) {
	if w.panicked == nil {
		return f()
	}
	defer func() {
		if v := recover(); v != nil {
			err = ErrPanicked
			w.panicked(v, debug.Stack())
		}
	}()
	return f()
}
