package h2session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
)

// readable says whether x/net's Framer, which checks every frame, reads the output of a Session to its end. The first frame
// is SETTINGS, no stream goes on after it was ended or reset, and bodies stay within the window a peer begins with, plus
// what granted says it was given.
func readable(t *testing.T, out []byte, granted uint64) {
	t.Helper()
	in := bytes.NewReader(out)
	fr := http2.NewFramer(io.Discard, in)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	over := map[uint32]bool{}
	sent := uint64(0)
	for n := 0; ; n++ {
		f, err := fr.ReadFrame()
		if errors.Is(err, io.EOF) && in.Len() == 0 {
			break
		}
		if err != nil {
			t.Fatalf("x/net cannot read frame %d of %x: %v", n, out, err)
		}
		h := f.Header()
		_, settings := f.(*http2.SettingsFrame)
		_, reset := f.(*http2.RSTStreamFrame)
		if n == 0 && !settings || h.StreamID != 0 && over[h.StreamID] && !reset && h.Type != http2.FrameWindowUpdate {
			t.Fatalf("frame %d of %x is %v", n, out, h)
		}
		if data, ok := f.(*http2.DataFrame); ok {
			sent += uint64(h.Length)
			over[h.StreamID] = over[h.StreamID] || data.StreamEnded()
		}
		if head, ok := f.(*http2.MetaHeadersFrame); ok {
			over[h.StreamID] = over[h.StreamID] || head.StreamEnded()
		}
		over[h.StreamID] = over[h.StreamID] || reset
	}
	if sent > 65535+granted {
		t.Fatalf("%d bytes are sent with a window of 65535 and %d", sent, granted)
	}
}

// windows adds up what the WINDOW_UPDATE frames of p give the connection, as far as p is frames.
func windows(p []byte) (sum uint64) {
	for len(p) >= h2frame.HeaderSize {
		h := h2frame.ParseHeader(p)
		if p = p[h2frame.HeaderSize:]; len(p) < h.Length {
			break
		}
		if h.Type == h2frame.WindowUpdate && h.Stream == 0 && h.Length == 4 {
			sum += uint64(p[0]&0x7f)<<24 | uint64(p[1])<<16 | uint64(p[2])<<8 | uint64(p[3])
		}
		p = p[h.Length:]
	}
	return sum
}

// serve feeds a server's Session with p in pieces of size bytes and returns all that can be said of the outcome
// whatever the pieces were.
func serve(t *testing.T, p []byte, size int) string {
	h := &side{}
	h.out.room = -1
	h.s.Start(&Config{}, h, &h.out)
	var kept []byte
	for rest := p; len(rest) > 0; {
		k := min(size, len(rest))
		kept, rest = append(kept, rest[:k]...), rest[k:]
		n := h.s.Receive(kept, 0)
		if n < 0 || n > len(kept) {
			t.Fatalf("used %d of %d bytes", n, len(kept))
		}
		kept = kept[n:]
		if len(kept) > h2frame.HeaderSize+h2frame.FrameSize {
			t.Fatalf("%d bytes are left unused", len(kept))
		}
		if h.woken {
			h.woken = false
			h.s.Present()
		}
		if s := h.s.Streams(); s > DefaultStreams {
			t.Fatalf("%d streams are open", s)
		}
	}
	if most := 4096 + 40*len(p); len(h.out.b) > most {
		t.Fatalf("%d bytes of output for %d of input", len(h.out.b), len(p))
	}
	readable(t, h.out.b, windows(bytes.TrimPrefix(p, []byte(h2frame.Preface))))
	outcome := fmt.Sprint(h.s.Err())
	for _, e := range h.opened {
		outcome += fmt.Sprintf("; %d heads, fault %d, body %x, trailers %q, end %v, closed %v", e.heads, e.fault, e.body, e.trailers, e.ended, e.closed)
	}
	h.s.Abandon()
	if h.s.Streams() != 0 || h.s.Held() != 0 {
		t.Fatalf("%d streams and %d bytes are left", h.s.Streams(), h.s.Held())
	}
	return outcome
}

// FuzzServer: whatever a client sends, nothing panics, everything stays within its bounds, and the pieces in which it
// arrives make no difference.
func FuzzServer(f *testing.F) {
	seed := func(frames ...[]byte) {
		all := append([]byte(h2frame.Preface), frame(h2frame.Settings, 0, 0, nil)...)
		f.Add(append(all, bytes.Join(frames, nil)...))
	}
	get := []byte("\x82\x86\x84\x41\x06a.test")
	post := []byte("\x83\x86\x84\x41\x06a.test\x0f\x0d\x015")
	seed(frame(h2frame.Headers, h2frame.FlagEndHeaders|h2frame.FlagEndStream, 1, get))
	seed(frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, post), frame(h2frame.Data, 0, 1, []byte("abc")), frame(h2frame.Data, h2frame.FlagEndStream, 1, []byte("de")))
	seed(frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, post), frame(h2frame.Data, h2frame.FlagPadded|h2frame.FlagEndStream, 1, []byte("\x02abcde\x00\x00")))
	seed(frame(h2frame.Headers, 0, 1, get[:3]), frame(h2frame.Continuation, h2frame.FlagEndHeaders, 1, get[3:]), frame(h2frame.RSTStream, 0, 1, make([]byte, 4)))
	seed(frame(h2frame.Headers, h2frame.FlagEndHeaders|h2frame.FlagPriority|h2frame.FlagPadded, 1, append(append([]byte{1, 0, 0, 0, 0, 16}, get...), 0)), frame(h2frame.Headers, 5, 1, []byte("\x00\x01x\x01y")))
	seed(frame(h2frame.WindowUpdate, 0, 0, []byte{0, 0, 0, 1}), frame(h2frame.Ping, 0, 0, make([]byte, 8)), frame(h2frame.GoAway, 0, 0, make([]byte, 8)))
	seed(frame(h2frame.Settings, 0, 0, []byte{0, 4, 0, 0, 0, 1, 0, 5, 0, 0, 64, 0}), frame(h2frame.Priority, 0, 3, []byte{0, 0, 0, 0, 1}), frame(0x50, 0, 0, nil))
	seed(frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, []byte("\x82\x86\x84\x41\x06a.test\x00\x01X\x01y")), frame(h2frame.Data, 0, 1, []byte("late")))
	f.Fuzz(func(t *testing.T, p []byte) {
		whole := serve(t, p, max(len(p), 1))
		for _, size := range []int{1, 10} {
			if parts := serve(t, p, size); parts != whole {
				t.Fatalf("in pieces of %d: %s\nwhole: %s", size, parts, whole)
			}
		}
	})
}

// ask feeds a client's Session that has one request out, with a body that goes on as long as there is a window for it.
func ask(t *testing.T, p []byte, size int) string {
	h := &side{}
	h.out.room = -1
	h.s.Start(&Config{Client: true}, h, &h.out)
	e := &echo{side: h}
	e.Bind(e)
	h.s.Request(&e.Stream)
	e.EndHead(h2frame.AppendRequestLine(e.BeginHead(), []byte("POST"), false, []byte("a.test"), []byte("/"), nil), framing.Unknown, false)
	e.SendData(make([]byte, 70000))
	var kept []byte
	for rest := p; len(rest) > 0; {
		k := min(size, len(rest))
		kept, rest = append(kept, rest[:k]...), rest[k:]
		n := h.s.Receive(kept, 0)
		if n < 0 || n > len(kept) || len(kept)-n > h2frame.HeaderSize+h2frame.FrameSize {
			t.Fatalf("used %d of %d bytes", n, len(kept))
		}
		kept = slices.Delete(kept, 0, n)
		if h.woken {
			h.woken = false
			h.s.Present()
		}
	}
	if !bytes.HasPrefix(h.out.b, []byte(h2frame.Preface)) {
		t.Fatalf("%x begins without a preface", h.out.b)
	}
	readable(t, h.out.b[len(h2frame.Preface):], windows(p))
	outcome := fmt.Sprintf("%v; %d heads, fault %d, body %x, trailers %q, end %v, closed %v", h.s.Err(), e.heads, e.fault, e.body, e.trailers, e.ended, e.closed)
	h.s.Abandon()
	if len(e.closed) != 1 || h.s.Held() != 0 || e.heads > 1+len(p)/10 {
		t.Fatalf("closed %v, %d bytes held, %d heads", e.closed, h.s.Held(), e.heads)
	}
	return outcome
}

// FuzzClient is the same for a client's Session.
func FuzzClient(f *testing.F) {
	f.Add(append(frame(h2frame.Settings, 0, 0, nil), frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, []byte{0x88})...))
	f.Add(bytes.Join([][]byte{
		frame(h2frame.Settings, 0, 0, []byte{0, 5, 0, 0, 0, 0}), frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, []byte("\x08\x03103")),
		frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, []byte{0x88}), frame(h2frame.Data, h2frame.FlagEndStream, 1, []byte("body")),
	}, nil))
	f.Add(bytes.Join([][]byte{
		frame(h2frame.Settings, 0, 0, nil), frame(h2frame.PushPromise, h2frame.FlagEndHeaders, 1, []byte{0, 0, 0, 2, 0x82}),
	}, nil))
	f.Add(bytes.Join([][]byte{
		frame(h2frame.Settings, 0, 0, nil), frame(h2frame.GoAway, 0, 0, make([]byte, 8)), frame(h2frame.RSTStream, 0, 1, []byte{0, 0, 0, 7}),
	}, nil))
	f.Add(bytes.Join([][]byte{
		frame(h2frame.Settings, 0, 0, []byte{0, 4, 0, 1, 0, 0}), frame(h2frame.WindowUpdate, 0, 0, []byte{0, 0, 1, 0}), frame(h2frame.WindowUpdate, 0, 1, []byte{0, 0, 1, 0}),
		frame(h2frame.Headers, h2frame.FlagEndHeaders, 1, []byte{0x88, 0x0f, 0x0d, 1, '3'}), frame(h2frame.Data, h2frame.FlagPadded|h2frame.FlagEndStream, 1, []byte("\x01abc\x00")),
	}, nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		whole := ask(t, p, max(len(p), 1))
		for _, size := range []int{1, 10} {
			if parts := ask(t, p, size); parts != whole {
				t.Fatalf("in pieces of %d: %s\nwhole: %s", size, parts, whole)
			}
		}
	})
}

func frame(t h2frame.Type, flags h2frame.Flags, stream uint32, payload []byte) []byte {
	return append(h2frame.AppendHeader(nil, h2frame.Header{Length: len(payload), Type: t, Flags: flags, Stream: stream}), payload...)
}
