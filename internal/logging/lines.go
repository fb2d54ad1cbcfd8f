package logging

import (
	"errors"
	"io"
)

// wholeLines writes lines. A disk that is full takes a part of one; what is written after that begins on a line of its own.
type wholeLines struct {
	w    io.Writer
	torn bool // the last line is not whole
}

// Write implements io.Writer.
func (l *wholeLines) Write(p []byte) (int, error) {
	if l.torn {
		if _, err := io.WriteString(l.w, "\n"); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.w.Write(p)
	if n > 0 {
		l.torn = p[n-1] != '\n'
	}
	return n, err
}

// everywhere writes to each writer, also after one of them failed.
type everywhere []io.Writer

// Write implements io.Writer. The error is that of all writers that failed.
func (e everywhere) Write(p []byte) (int, error) {
	var failed []error
	for _, w := range e {
		if _, err := w.Write(p); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return 0, errors.Join(failed...)
	}
	return len(p), nil
}
