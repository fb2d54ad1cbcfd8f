package runtime

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// maxLog bounds the octets of a container's output that are kept; the oldest lines go first.
const maxLog = 16 << 20

// maxLine bounds a line; longer ones are kept in parts.
const maxLine = 16 << 10

// Line is one of a container's output, or a part of a long one.
type Line struct {
	Time time.Time
	Text string // with its newline, but for the last part of an output that ends without one
}

// Log keeps a container's output. Its zero value is ready for use. It is safe for
// concurrent use.
type Log struct {
	mu      sync.Mutex
	lines   []Line
	size    int           // octets in lines
	dropped int           // number of lines that were dropped
	changed chan struct{} // closed at the next change; nil when nobody waits
	writers int
}

// Writer returns the writing end of a pipe whose lines go to the log, for a container's
// Stdout. The log is at its end when all copies of all writers are closed.
func (l *Log) Writer() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.writers++
	l.mu.Unlock()
	go l.copy(r)
	return w, nil
}

// copy adds what r gives, line by line.
func (l *Log) copy(r *os.File) {
	defer r.Close()
	reader := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := reader.ReadSlice('\n')
		if len(text) > 0 {
			l.add(Line{Time: time.Now(), Text: string(text)})
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	l.mu.Lock()
	l.writers--
	l.wake()
	l.mu.Unlock()
}

func (l *Log) add(line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.size += len(line.Text)
	drop := 0
	for l.size > maxLog {
		l.size -= len(l.lines[drop].Text)
		drop++
	}
	if drop > 0 {
		l.lines = append([]Line(nil), l.lines[drop:]...)
		l.dropped += drop
	}
	l.wake()
}

// wake tells those that wait. The caller holds mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// from returns the lines from number n on, counted from the container's start, the number
// after them, whether more can come, and what is closed then.
func (l *Log) from(n int) (lines []Line, next int, open bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines = l.lines[min(max(n-l.dropped, 0), len(l.lines)):]
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return lines, l.dropped + len(l.lines), l.writers > 0, l.changed
}

// Drain waits until the log is at its end, or ctx ends: when a container has ended, its last
// lines are still on their way.
func (l *Log) Drain(ctx context.Context) {
	for next := 0; ; {
		_, n, open, changed := l.from(next)
		if !open {
			return
		}
		next = n
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ReadOptions choose lines of a log.
type ReadOptions struct {
	Follow     bool      // go on until the container ends
	Since      time.Time // leave out older lines; zero for none
	Tail       int64     // at most the newest lines of those that are there; negative for all
	Limit      int64     // at most so many octets; 0 for all
	Timestamps bool      // put the time before each line
}

// Read writes lines of the log to w. The end of ctx ends it.
func (l *Log) Read(ctx context.Context, w io.Writer, o ReadOptions) error {
	if o.Limit > 0 {
		w = &limited{w: w, left: o.Limit}
	}
	lines, next, open, changed := l.from(0)
	if o.Tail >= 0 && int64(len(lines)) > o.Tail {
		lines = lines[int64(len(lines))-o.Tail:]
	}
	for {
		for _, line := range lines {
			if line.Time.Before(o.Since) {
				continue
			}
			text := line.Text
			if o.Timestamps {
				text = line.Time.UTC().Format(time.RFC3339Nano) + " " + text
			}
			if _, err := io.WriteString(w, text); err != nil {
				if errors.Is(err, errLimit) {
					return nil
				}
				return err
			}
		}
		if !o.Follow || !open {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		lines, next, open, changed = l.from(next)
	}
}

// limited writes at most left octets.
type limited struct {
	w    io.Writer
	left int64
}

var errLimit = errors.New("limit reached")

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		n, err := l.w.Write(p[:l.left])
		l.left = 0
		if err == nil {
			err = errLimit
		}
		return n, err
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
