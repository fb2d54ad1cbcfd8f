package logging

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/proxy"
)

// gatedWriter takes what is written once the gate is open, and says when somebody waits there.
type gatedWriter struct {
	bytes.Buffer
	waits, gate chan struct{}
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	w.waits <- struct{}{}
	<-w.gate
	return w.Buffer.Write(p)
}

func TestQueue(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 9), gate: make(chan struct{})}
	q := NewQueue(w, 20)
	log := func(text string) {
		if n, err := io.WriteString(q, text); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	log("one\n")
	<-w.waits
	log("two, of 12..\n")
	log("three, lost\n")
	log("four\n") // there is room for this one
	log("five, lost\n")
	close(w.gate)
	q.Close(time.Minute)
	log("six, after the end\n")
	got := w.String()
	if !strings.HasPrefix(got, "one\ntwo, of 12..\nfour\n{") || !strings.HasSuffix(got, `"lines":2}`+"\n") || strings.Count(got, "\n") != 4 {
		t.Errorf("written: %q", got)
	}
}

// TestQueueEnds: the end does not wait for a reader that hangs.
func TestQueueEnds(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 1), gate: make(chan struct{})}
	q := NewQueue(w, 20)
	_, _ = q.Write([]byte("x\n"))
	<-w.waits
	q.Close(time.Millisecond)
	select {
	case <-q.done:
		t.Error("the writer has ended")
	default:
	}
	close(w.gate)
	<-q.done
}

// diskWriter has room for so many bytes.
type diskWriter struct {
	text []byte
	room int
}

var errNoSpace = errors.New("no space left on device")

func (w *diskWriter) Write(p []byte) (int, error) {
	n := min(w.room, len(p))
	w.room -= n
	w.text = append(w.text, p[:n]...)
	if n < len(p) {
		return n, errNoSpace
	}
	return n, nil
}

func TestWholeLines(t *testing.T) {
	disk := &diskWriter{room: 6}
	l := &wholeLines{w: disk}
	for i, s := range []struct {
		room int // more
		text string
		err  error
	}{
		{0, "abc\n", nil},
		{0, "def\nghi\n", errNoSpace},
		{0, "jkl\n", errNoSpace},
		{1, "mno\n", errNoSpace}, // room for the line end alone
		{2, "pqr\n", errNoSpace},
		{20, "stu\n", nil},
		{0, "vwx\n", nil},
	} {
		disk.room += s.room
		if _, err := l.Write([]byte(s.text)); !errors.Is(err, s.err) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if got, want := string(disk.text), "abc\nde\npq\nstu\nvwx\n"; got != want {
		t.Errorf("on disk: %q, want %q", got, want)
	}
}

// TestAccessLogEnds: an access log that nobody reads does not hold up the end, and says so.
func TestAccessLogEnds(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 1), gate: make(chan struct{})}
	var said bytes.Buffer
	a, end, err := OpenRequests(RequestsConfig{Access: "stdout", Stdout: w, Log: New(&said, zapcore.InfoLevel, JSON)})
	if err != nil {
		t.Fatal(err)
	}
	a.Log(&proxy.Record{Status: 200})
	<-w.waits
	end()
	if !strings.Contains(said.String(), "nobody reads it") {
		t.Errorf("said %q", said.String())
	}
	close(w.gate)
	a.Close()
}
