package router

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// Log keeps what a router writes.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{written: make(chan struct{})} }

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.written)
	l.written = make(chan struct{})
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often text was written.
func (l *Log) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// wait waits until text was written.
func (l *Log) wait(text string, ended <-chan struct{}, timeout <-chan time.Time) error {
	for {
		l.mu.Lock()
		found, written := bytes.Contains(l.text.Bytes(), []byte(text)), l.written
		l.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-written:
		case <-ended:
			return fmt.Errorf("it ended before it logged %s", text)
		case <-timeout:
			return fmt.Errorf("it did not log %s", text)
		}
	}
}
