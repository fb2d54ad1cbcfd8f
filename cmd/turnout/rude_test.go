package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// recycleAfter is how many requests an HTTP/2 pod of a rollout takes on a connection, roughly, before it asks for another one.
const recycleAfter = 50

// rolloutPages is what pods of a rollout serve: a page, something large, and events without an end.
func rolloutPages(requests *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		if n := requests.Add(1); q.ProtoMajor == 2 && n%recycleAfter == 0 {
			w.Header().Set("Connection", "close") // GOAWAY
		}
		_, _ = io.WriteString(w, "page")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 64<<10)
		for range 64 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, q *http.Request) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for q.Context().Err() == nil {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("e", 300))
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-q.Context().Done():
			}
		}
	})
	return mux
}

// rude are clients that read slowly and clients that leave, all the time. Nobody asks what becomes of them.
type rude struct {
	addr    string
	stop    chan struct{}
	running sync.WaitGroup
	done    atomic.Int64 // requests
}

func startRude(addr string) *rude {
	r := &rude{addr: addr, stop: make(chan struct{})}
	for _, act := range []func(){r.slow1, r.slow1, r.leave1, r.slow2, r.leave2} {
		r.running.Go(func() {
			for {
				select {
				case <-r.stop:
					return
				default:
					act()
				}
			}
		})
	}
	return r
}

func (r *rude) end() {
	close(r.stop)
	r.running.Wait()
}

// wait returns early when it is over.
func (r *rude) wait(d time.Duration) {
	select {
	case <-r.stop:
	case <-time.After(d):
	}
}

func (r *rude) ask1(path string) net.Conn {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.wait(10 * time.Millisecond)
		return nil
	}
	r.done.Add(1)
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: app.test\r\n\r\n")
	return c
}

// slow1 reads some of a large answer, slowly.
func (r *rude) slow1() {
	c := r.ask1("/large")
	if c == nil {
		return
	}
	defer c.Close()
	b := make([]byte, 8<<10)
	for range 10 {
		if _, err := c.Read(b); err != nil {
			return
		}
		r.wait(30 * time.Millisecond)
	}
}

// leave1 leaves a stream of events.
func (r *rude) leave1() {
	c := r.ask1("/events")
	if c == nil {
		return
	}
	defer c.Close()
	_, _ = c.Read(make([]byte, 100))
	r.wait(10 * time.Millisecond)
}

// ask2 opens some streams and returns what resets them.
func (r *rude) ask2(window uint32, path string, streams uint32) (c net.Conn, reset func()) {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.wait(10 * time.Millisecond)
		return nil, nil
	}
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	fr := http2.NewFramer(c, c)
	_, _ = io.WriteString(c, http2.ClientPreface)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	_ = fr.WriteSettingsAck()
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for i := range streams {
		b.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "app.test"}, {":path", path}} {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: b.Bytes(), EndStream: true, EndHeaders: true})
	}
	r.done.Add(int64(streams))
	r.running.Go(func() { _, _ = io.Copy(io.Discard, c) })
	return c, func() {
		for i := range streams {
			_ = fr.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
	}
}

// slow2 has streams whose windows are shut.
func (r *rude) slow2() {
	if c, _ := r.ask2(0, "/large", 20); c != nil {
		r.wait(300 * time.Millisecond)
		c.Close()
	}
}

// leave2 gives up streams of events, and its connection.
func (r *rude) leave2() {
	if c, reset := r.ask2(65535, "/events", 10); c != nil {
		r.wait(40 * time.Millisecond)
		reset()
		r.wait(10 * time.Millisecond)
		c.Close()
	}
}
