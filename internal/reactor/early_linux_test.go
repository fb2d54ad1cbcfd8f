package reactor

import (
	"io"
	"testing"
)

// TestReadAhead has two connections readable in one batch. Whichever handler comes
// first changes what is to become of the other's bytes, which have been read already.
func TestReadAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(t *testing.T, l *Loop, other *Conn, got *string)
		after  func(other *Conn)
		sent   string
		want   string
	}{
		"nothing": {change: func(*testing.T, *Loop, *Conn, *string) {}, sent: "bytes", want: "bytes"},
		"pause": {
			change: func(_ *testing.T, _ *Loop, other *Conn, _ *string) { other.Pause() },
			after:  func(other *Conn) { other.Resume() }, sent: "bytes", want: "bytes",
		},
		"close": {change: func(_ *testing.T, _ *Loop, other *Conn, _ *string) { other.CloseNow(false) }, sent: "bytes"},
		"another handler": {
			change: func(_ *testing.T, _ *Loop, other *Conn, got *string) {
				other.SetHandler(&hooks{data: func(_ *Conn, p []byte) int { *got += "new:" + string(p); return len(p) }})
			}, sent: "bytes", want: "new:bytes",
		},
		"a layer": {
			change: func(_ *testing.T, _ *Loop, other *Conn, _ *string) { other.SetLayer(&xorLayer{c: other}) },
			sent:   string(xorEncode([]byte("bytes"))), want: "bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := steppedLoop(t, Config{})
			var conns [2]*Conn
			var got [2]string
			first := -1
			handler := func(i int) *hooks {
				return &hooks{data: func(_ *Conn, p []byte) int {
					if first < 0 {
						first = i
						tc.change(t, l, conns[1-i], &got[1-i])
						return len(p)
					}
					got[i] += string(p)
					return len(p)
				}}
			}
			pa, ca := steppedPair(t, l, handler(0))
			pb, cb := steppedPair(t, l, handler(1))
			conns = [2]*Conn{ca, cb}
			if err := l.iterate(0); err != nil { // writable events of the accepts
				t.Fatal(err)
			}
			send(t, pa, tc.sent)
			send(t, pb, tc.sent)
			if err := l.iterate(0); err != nil {
				t.Fatal(err)
			}
			if l.early.used != 2 {
				t.Fatalf("%d connections were read ahead, want 2", l.early.used)
			}
			other := conns[1-first]
			if tc.after != nil {
				if got[1-first] != "" {
					t.Fatalf("got %q while paused", got[1-first])
				}
				tc.after(other)
			}
			for range 3 {
				if err := l.iterate(0); err != nil {
					t.Fatal(err)
				}
			}
			if got[1-first] != tc.want {
				t.Errorf("got %q, want %q", got[1-first], tc.want)
			}
			if tc.want != "" && other.BytesRead() != uint64(len(tc.sent)) {
				t.Errorf("%d bytes read, want %d", other.BytesRead(), len(tc.sent))
			}
		})
	}
}

// TestReadAheadThenSplice: bytes that were read ahead go first when their connection is spliced.
func TestReadAheadThenSplice(t *testing.T) {
	l := steppedLoop(t, Config{})
	var conns [3]*Conn
	first := -1
	handler := func(i int) *hooks {
		return &hooks{data: func(_ *Conn, p []byte) int {
			if first < 0 && i < 2 {
				first = i
				if _, err := l.Splice(conns[1-i], conns[2], nil); err != nil {
					t.Error(err)
				}
				return len(p)
			}
			t.Errorf("connection %d was presented %q", i, p)
			return len(p)
		}}
	}
	var peers [3]io.ReadWriter
	for i := range conns {
		peers[i], conns[i] = steppedPair(t, l, handler(i))
	}
	if err := l.iterate(0); err != nil {
		t.Fatal(err)
	}
	send(t, peers[0], "bytes")
	send(t, peers[1], "bytes")
	if err := l.iterate(0); err != nil {
		t.Fatal(err)
	}
	send(t, peers[1-first], " and more")
	got := make(chan string, 1)
	go func() {
		buf := make([]byte, len("bytes and more"))
		n, _ := io.ReadFull(peers[2], buf)
		got <- string(buf[:n])
	}()
	var text string
	step(t, l, "the spliced bytes", func() bool {
		select {
		case text = <-got:
			return true
		default:
			return false
		}
	})
	if text != "bytes and more" {
		t.Errorf("got %q", text)
	}
}
