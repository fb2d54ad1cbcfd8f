//go:build !race

package h2_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/testkit"
	"turnout/proxy"
	"turnout/proxy/identity"
)

// caller is an HTTP/2 client that sends the same batch of requests again and again without allocating.
type caller struct {
	t     testing.TB
	c     net.Conn
	batch []byte // HEADERS frames; fields that the table of HPACK has room for are indexed
	count int
	next  uint32
	buf   []byte
}

func newCaller(t testing.TB, addr string, count int, more ...[2]string) *caller {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr, enc := http2.NewFramer(&out, nil), hpack.NewEncoder(&block)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = fr.WriteSettingsAck()
	_ = fr.WriteWindowUpdate(0, 1<<31-1-65535)
	cl := &caller{t: t, c: c, count: count, next: 1, buf: make([]byte, 64<<10)}
	for i := range 1 + count {
		block.Reset()
		for _, f := range append([][2]string{
			{":method", "GET"}, {":scheme", "http"}, {":authority", "app.test"}, {":path", "/path?x=1"}, {"user-agent", "test"},
			{"accept", "*/*"}, {"accept-encoding", "gzip"}, {"cookie", "a=b; c=d"},
		}, more...) {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		if i == 0 { // fills the dynamic table
			if _, err := c.Write(out.Bytes()); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			cl.next += 2
		}
	}
	cl.batch = out.Bytes()
	cl.first()
	return cl
}

// first reads everything up to the first answer's end.
func (cl *caller) first() {
	fr := http2.NewFramer(nil, cl.c)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			cl.t.Fatal(err)
		}
		if f.Header().Type == http2.FrameData && f.Header().Flags.Has(http2.FlagDataEndStream) {
			return
		}
	}
}

// trip sends a batch and reads its answers.
func (cl *caller) trip() {
	for at := 0; at < len(cl.batch); {
		binary.BigEndian.PutUint32(cl.batch[at+5:], cl.next)
		cl.next += 2
		at += 9 + int(cl.batch[at+1])<<8 + int(cl.batch[at+2])
	}
	if _, err := cl.c.Write(cl.batch); err != nil {
		cl.t.Fatal(err)
	}
	ends, n := 0, 0
	for ends < cl.count {
		k, err := cl.c.Read(cl.buf[n:])
		if err != nil {
			cl.t.Fatal(err)
		}
		n += k
		at := 0
		for n-at >= 9 {
			size := 9 + int(cl.buf[at+1])<<8 + int(cl.buf[at+2])
			if n-at < size {
				break
			}
			if cl.buf[at+3] == byte(http2.FrameRSTStream) || cl.buf[at+3] == byte(http2.FrameGoAway) {
				cl.t.Fatalf("frame % x", cl.buf[at:at+size])
			}
			if cl.buf[at+4]&1 != 0 {
				ends++
			}
			at += size
		}
		n = copy(cl.buf, cl.buf[at:n])
	}
}

// TestNoAllocation: a request over a connection that lives costs no allocation once HPACK has its fields, with
// forwarded fields and a sticky cookie to take out, alone and in company; and the answers to those that came
// together leave together.
func TestNoAllocation(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n" + strings.Repeat("x", 128)
	r := testkit.StartRouter(t, 1, discard{})
	spec := testkit.Spec("app.test", testkit.Answering(t, answer))
	spec.CookieName, spec.Policy.CookieAttributes = "sticky", "; path=/; HttpOnly"
	spec.Policy.HSTS = "max-age=1"
	r.Publish(t, spec)
	r.Client.Identity = new(identity.Rules).Of(nil)
	for _, count := range []int{1, 16} {
		cl := newCaller(t, r.Addr.String(), count)
		for range 200 {
			cl.trip()
		}
		before := r.Stats(t)
		const rounds = 1000
		if got := testing.AllocsPerRun(rounds, cl.trip); got != 0 {
			t.Errorf("%v allocations for %d requests at once, want 0", got, count)
		}
		after := r.Stats(t)
		sends := float64(after.Writes-before.Writes) / float64((rounds+1)*count)
		t.Logf("%d at once: %.2f sends for each request", count, sends)
		if sends > 2 || count == 1 && sends != 2 {
			t.Errorf("%v sends for each of %d requests at once, want one to the endpoint and a part of one to the client", sends, count)
		}
	}
}

// TestLargeHeadsAllocateLittle: nor does one with fields that HPACK has no place for, in the steady state.
func TestLargeHeadsAllocateLittle(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n" + strings.Repeat("x", 128)
	r := testkit.StartRouter(t, 1, discard{})
	r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, answer)))
	var fields, cookies, large [][2]string
	for i := range 90 {
		fields = append(fields, [2]string{fmt.Sprintf("x-field-%d", i), fmt.Sprintf("value %d of one that is not so short", i)})
	}
	for i := range 30 {
		cookies = append(cookies, [2]string{"cookie", fmt.Sprintf("cookie-%d=%s", i, strings.Repeat("v", 200))})
	}
	for i := range 10 {
		large = append(large, [2]string{fmt.Sprintf("x-%d", i), strings.Repeat("v", 1400)})
	}
	for name, more := range map[string][][2]string{"90 fields": fields, "30 cookies": cookies, "14 KiB": large} {
		for _, count := range []int{1, 4} {
			cl := newCaller(t, r.Addr.String(), count, more...)
			for range 100 {
				cl.trip()
			}
			if got := testing.AllocsPerRun(300, cl.trip); got > 1 {
				t.Errorf("%s: %v allocations for %d requests at once", name, got, count)
			}
		}
	}
}

// TestBulkAllocatesLittle: body bytes pass through buffers that are there already.
func TestBulkAllocatesLittle(t *testing.T) {
	r := testkit.StartRouter(t, 1, nil)
	r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"+strings.Repeat("x", 1<<20))))
	cl := newCaller(t, r.Addr.String(), 1)
	for range 50 {
		cl.trip()
	}
	// A buffer now and then when the client is slow; one for each frame would be 64.
	if got := testing.AllocsPerRun(100, cl.trip); got > 4 {
		t.Errorf("%v allocations for an answer of 1 MiB", got)
	}
}

// BenchmarkRequest is one request and its answer over a connection to an HTTP/1.1 endpoint, client and endpoint
// included.
func BenchmarkRequest(b *testing.B) {
	r := testkit.StartRouter(b, 1, nil)
	r.Publish(b, testkit.Spec("app.test", testkit.Answering(b, "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"+strings.Repeat("x", 128))))
	for _, count := range []int{1, 16} {
		b.Run(map[int]string{1: "alone", 16: "16 at once"}[count], func(b *testing.B) {
			cl := newCaller(b, r.Addr.String(), count)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N/count + 1 {
				cl.trip()
			}
		})
	}
}

// discard is an access log that costs what any log costs the pipeline.
type discard struct{}

func (discard) Log(*proxy.Record) {}
