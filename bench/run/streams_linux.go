package main

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
)

// Windows as browsers open them.
const (
	streamWindow = 6 << 20
	connWindow   = 15 << 20
	updateAfter  = 1 << 20
)

// streamed is a router with a core of its own and one loop: two would share few connections unevenly, and requests of the busier one
// would wait for this client's core as well.
type streamed struct {
	*site.T
	router *site.Router
	size   int64 // of a download
}

// streams measures HTTP/2 where single requests do not show it, over TLS: a download on one stream against the same over HTTP/1.1,
// by the router's CPU time, and many streams on few connections, each followed by the next.
func streams(f *flag.FlagSet) func(*site.T) {
	mib := f.Int("mib", 1024, "size of the download in MiB, 0 = none")
	rounds := f.Int("rounds", 3, "downloads by each protocol")
	connections := f.Int("connections", 10, "connections that share the streams")
	count := f.Int("streams", 1000, "streams at once, at most 100 for each connection")
	requests := f.Int("requests", 200_000, "requests on them, 0 = none")
	share := f.Float64("share", 0.8, "of HTTP/1.1's throughput for the same CPU time that HTTP/2 must have")
	ratio := f.Float64("ratio", 2, "how many times the median the 99th percentile may be")
	return func(t *site.T) {
		if *rounds < 1 || *connections < 1 || *count < *connections || *count > 100**connections {
			site.Refuse(fmt.Errorf("cannot measure %d streams on %d connections in %d rounds", *count, *connections, *rounds))
		}
		apart := site.Apart()
		if !apart {
			t.Printf("one core: the figures are about this client too\n")
		}
		s := &streamed{T: t, size: int64(*mib) << 20}
		backend := t.ServeConns(s.answer)
		s.router = t.Start(site.Config{Alone: apart, Manifests: site.Route{Host: "localhost", Service: "streams", Annotations: site.NoCookies, TLS: "termination: edge"}.String() +
			site.Service{Name: "streams", Port: backend.Port()}.String()})
		if *mib > 0 {
			var shares []float64
			for range *rounds {
				plain, multiplexed := s.cost("HTTP/1.1", s.downloadHTTP1), s.cost("HTTP/2", s.downloadHTTP2)
				shares = append(shares, float64(plain)/float64(multiplexed))
			}
			got := site.Median(shares)
			t.Printf("HTTP/2 has %.2f of HTTP/1.1's throughput for the same CPU time (median of %d)\n", got, len(shares))
			if got < *share {
				t.Failf("want %v at least", *share)
			}
		}
		if *requests > 0 {
			all := make([][]time.Duration, *connections)
			site.Together(len(all), len(all), func(i int) { all[i] = s.busy(*count / *connections, *requests / *connections) })
			times := slices.Concat(all...)
			l := site.LatencyOf(times)
			times99 := float64(l.P99) / float64(l.P50)
			t.Printf("%d streams on %d connections, %d requests: median %s, 99th percentile %s, ratio %.2f\n",
				*count, *connections, len(times), l.P50.Round(10*time.Microsecond), l.P99.Round(10*time.Microsecond), times99)
			if times99 > *ratio {
				t.Failf("want %v times the median at most", *ratio)
			}
		}
	}
}

// cost is the router's CPU time for a download.
func (s *streamed) cost(protocol string, get func()) time.Duration {
	before, began := s.router.CPU(), time.Now()
	get()
	cpu := s.router.CPU() - before
	s.Printf("%-8s %5d MiB: %6.1f µs of CPU per MiB, %5.2f s\n", protocol, s.size>>20, float64(cpu.Nanoseconds())/1e3/site.MiB(s.size), time.Since(began).Seconds())
	return cpu
}

// answer answers /large with as many bytes as a download has, everything else with 128.
func (s *streamed) answer(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		size := int64(128)
		if q.URL.Path == "/large" {
			size = s.size
		}
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		if size > 128 {
			_, _ = io.WriteString(c, head)
			site.WriteZeros(c, size)
		} else if _, err := io.WriteString(c, head+strings.Repeat("x", int(size))); err != nil {
			return
		}
	}
}

// dial opens a connection of TLS 1.3 that speaks protocol.
func (s *streamed) dial(protocol string) net.Conn {
	d := tls.Dialer{Config: &tls.Config{ServerName: "localhost", InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}}
	c, err := d.DialContext(s.Context, "tcp", s.router.HTTPS)
	site.Checkf(err, "cannot connect")
	if got := c.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != protocol {
		site.Stopf("cannot speak %s: the router chose %q", protocol, got)
	}
	return c
}

func (s *streamed) downloadHTTP1() {
	c := s.dial("http/1.1")
	defer c.Close()
	_, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
	site.Checkf(err, "cannot ask")
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 256<<10), nil)
	site.Checkf(err, "cannot read an answer")
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 256<<10))
	_ = resp.Body.Close()
	site.Checkf(err, "cannot read a download")
	s.whole(n)
}

func (s *streamed) whole(n int64) {
	if n != s.size {
		site.Stopf("a download has %d bytes, want %d", n, s.size)
	}
}

// connect greets, with windows that are open wide.
func (s *streamed) connect() *site.H2 {
	h := site.NewH2(s.dial("h2"), 256<<10, http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow})
	h.Literal, h.Scheme = true, "https"
	_ = h.WriteWindowUpdate(0, connWindow-65535)
	return h
}

// next reads a frame; the router has no reason to end a stream.
func next(h *site.H2) http2.FrameHeader {
	f := h.Next()
	if f.Type == http2.FrameRSTStream || f.Type == http2.FrameGoAway {
		site.Stopf("the router ended a stream or the connection")
	}
	return f
}

func (s *streamed) downloadHTTP2() {
	h := s.connect()
	defer h.Close()
	h.Get("localhost", "/large")
	total, owed := int64(0), uint32(0)
	for {
		h.Flush()
		f := next(h)
		if f.Type != http2.FrameData {
			continue
		}
		total += int64(f.Length)
		if site.Ends(f) {
			break
		}
		if owed += f.Length; owed >= updateAfter {
			_, _ = h.WriteWindowUpdate(0, owed), h.WriteWindowUpdate(1, owed)
			owed = 0
		}
	}
	s.whole(total)
}

// busy keeps so many streams of one connection busy until the requests are answered, and returns how long each took but for the first
// tenth, which warms up.
func (s *streamed) busy(streams, requests int) []time.Duration {
	h := s.connect()
	defer h.Close()
	began := map[uint32]time.Time{}
	ask := func() { began[h.Get("localhost", "/small")] = time.Now() }
	for range streams {
		ask()
	}
	times := make([]time.Duration, 0, requests)
	for done, owed := 0, uint32(0); done < requests; {
		if h.Buffered() == 0 {
			h.Flush()
		}
		f := next(h)
		if f.Type == http2.FrameData {
			if owed += f.Length; owed >= updateAfter {
				_ = h.WriteWindowUpdate(0, owed)
				owed = 0
			}
		}
		if site.Ends(f) {
			if done++; done > requests/10 {
				times = append(times, time.Since(began[f.StreamID]))
			}
			delete(began, f.StreamID)
			ask()
		}
	}
	return times
}
