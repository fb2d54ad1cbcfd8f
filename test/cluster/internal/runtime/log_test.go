package runtime

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// wait waits until n lines are in the log.
func wait(t *testing.T, l *Log, n int) {
	t.Helper()
	for {
		lines, _, _, changed := l.from(0)
		if len(lines) >= n {
			return
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("there are %d lines, want %d", len(lines), n)
		}
	}
}

func read(t *testing.T, l *Log, o ReadOptions) string {
	t.Helper()
	var b strings.Builder
	if err := l.Read(t.Context(), &b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLogFollow(t *testing.T) {
	var l Log
	w, err := l.Writer()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "one\ntwo\n")
	wait(t, &l, 2)
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- l.Read(context.Background(), out, ReadOptions{Follow: true, Tail: 1})
		out.Close()
	}()
	line := make([]byte, 4)
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "two\n" {
		t.Fatalf("%q, %v", line, err)
	}
	fmt.Fprint(w, "three\nfour")
	w.Close()
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "three\nfour" {
		t.Errorf("%q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLogFollowEndsWithItsReader(t *testing.T) {
	var l Log
	w, err := l.Writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Read(ctx, io.Discard, ReadOptions{Follow: true, Tail: -1}) }()
	cancel()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
}

func TestLogIsBounded(t *testing.T) {
	var l Log
	line := Line{Text: strings.Repeat("x", maxLine-1) + "\n"}
	for range maxLog/maxLine + 10 {
		l.add(line)
	}
	if l.size > maxLog || l.dropped != 10 {
		t.Errorf("%d octets are kept, %d lines were dropped", l.size, l.dropped)
	}
	if got := read(t, &l, ReadOptions{Tail: -1}); len(got) != maxLog {
		t.Errorf("%d octets are read", len(got))
	}
	if lines, _, _, _ := l.from(3); len(lines) != maxLog/maxLine {
		t.Errorf("after lines that are gone there are %d", len(lines))
	}
}

func TestLongLinesComeInParts(t *testing.T) {
	var l Log
	w, err := l.Writer()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("y", 3*maxLine+5) + "\n"
	fmt.Fprint(w, long)
	w.Close()
	wait(t, &l, 4)
	if got := read(t, &l, ReadOptions{Tail: -1}); got != long {
		t.Errorf("%d octets are read, want %d", len(got), len(long))
	}
}

func TestLogSinceAndLimit(t *testing.T) {
	var l Log
	begin := time.Now()
	for i := range 5 {
		l.add(Line{Time: begin.Add(time.Duration(i) * time.Second), Text: fmt.Sprintln(i)})
	}
	if got := read(t, &l, ReadOptions{Tail: -1, Since: begin.Add(3 * time.Second)}); got != "3\n4\n" {
		t.Errorf("since: %q", got)
	}
	if got := read(t, &l, ReadOptions{Tail: 3, Limit: 5}); got != "2\n3\n4" {
		t.Errorf("limited: %q", got)
	}
	if got := read(t, &l, ReadOptions{Tail: 1, Timestamps: true}); got != begin.Add(4*time.Second).UTC().Format(time.RFC3339Nano)+" 4\n" {
		t.Errorf("with time: %q", got)
	}
}
