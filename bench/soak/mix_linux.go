package soak

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
)

// kind is a sort of client. Each client has a lane of its own, and a function that makes some requests on it, one after the other or
// all at once. After an error the lane begins anew. Nothing is repeated: what fails has failed.
type kind struct {
	name    string
	clients int
	every   time.Duration // from one round of requests to the next
	lane    lane
	client  func() func(l *lane)
	parts   int // requests of a round; 0 = one
}

// kinds are the mixed load: some 900 requests a second.
func kinds() []kind {
	const often, seldom = 20 * time.Millisecond, 50 * time.Millisecond
	h2 := func(host string) lane { return lane{host: host, h2: true, most: 200} }
	return []kind{
		{"HTTP/1.1, kept", 8, often, lane{host: hostWeb, most: 1000}, always(page), 0},
		{"HTTP/1.1, closed after each", 2, often, lane{host: hostWeb, most: 1}, always(lastPage), 0},
		{"TLS, kept", 2, often, lane{host: hostWeb, most: 500, tls: true, resume: true}, always(page), 0},
		{"TLS, resumed for each", 2, seldom, lane{host: hostWeb, most: 1, tls: true, resume: true}, always(page), 0},
		{"HTTP/2", 2, 100 * time.Millisecond, h2(hostWeb), always(parallelPages), parallelStreams},
		{"streams as gRPC's", 2, 100 * time.Millisecond, h2(hostStream), always(call), 0},
		{"POST", 2, seldom, lane{host: hostWeb, most: 100}, posts, 0},
		{"downloads", 1, time.Second, lane{host: hostWeb, most: 3}, always(download), 0},
		{"downloads, TLS", 1, time.Second, lane{host: hostWeb, most: 3, tls: true}, always(download), 0},
		{"pods of HTTP/2", 2, often, lane{host: hostStream, most: 1000}, always(page), 0},
		{"POST, pods of HTTP/2", 2, seldom, lane{host: hostStream, most: 100}, posts, 0},
		{"slow readers", 2, seldom, lane{host: hostWeb}, always(sip), 0},
		{"slow readers, pods of HTTP/2", 2, seldom, lane{host: hostStream}, always(sip), 0},
		{"clients that leave", 2, seldom, h2(hostWeb), always(glance), 0},
		{"leavers, pods of HTTP/2", 2, seldom, h2(hostStream), always(glance), 0},
		{"sticky cookies", 2, often, lane{host: hostSticky, most: 30}, func() func(*lane) { return new(session).page }, 0},
	}
}

// always is a client that remembers nothing.
func always(do func(l *lane)) func() func(*lane) {
	return func() func(*lane) { return do }
}

// counter is what became of the requests of a kind.
type counter struct {
	kind
	requests, failed, resumed atomic.Int64

	mu    sync.Mutex
	first []string // errors, at most someWrong
}

// mix is the mixed load while it runs.
type mix struct {
	counters []*counter
	running  sync.WaitGroup
}

// startMix starts all clients. They end with ctx, each after the round it is in.
func startMix(ctx context.Context, s *scene) *mix {
	m := &mix{}
	for _, k := range kinds() {
		c := &counter{kind: k}
		m.counters = append(m.counters, c)
		for range k.clients {
			m.running.Go(func() { c.run(ctx, s) })
		}
	}
	return m
}

func (c *counter) run(ctx context.Context, s *scene) {
	l := c.lane
	l.s, l.resumed = s, &c.resumed
	defer l.drop()
	do := c.client()
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := site.Try(func() { do(&l) })
		c.requests.Add(int64(max(c.parts, 1)))
		if err == nil {
			continue
		}
		l.drop()
		c.failed.Add(1)
		c.mu.Lock()
		if len(c.first) < someWrong {
			c.first = append(c.first, time.Now().Format(time.TimeOnly)+" "+err.Error())
		}
		c.mu.Unlock()
	}
}

func (m *mix) counts() (requests, failed int64) {
	for _, c := range m.counters {
		requests += c.requests.Load()
		failed += c.failed.Load()
	}
	return requests, failed
}

func (m *mix) print(out io.Writer) {
	for _, c := range m.counters {
		fmt.Fprintf(out, "%-30s %9d requests, %d failed", c.name, c.requests.Load(), c.failed.Load())
		if n := c.resumed.Load(); n > 0 {
			fmt.Fprintf(out, ", %d sessions resumed", n)
		}
		fmt.Fprintln(out)
	}
}

func (m *mix) judge() (wrong []string) {
	for _, c := range m.counters {
		if c.requests.Load() == 0 {
			wrong = append(wrong, c.name+": there was no request")
		}
		c.mu.Lock()
		if n := c.failed.Load(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %d requests failed, first %q", c.name, n, c.requests.Load(), c.first))
		}
		c.mu.Unlock()
	}
	return wrong
}

// lane is a connection to the router that is opened when it is needed.
type lane struct {
	host   string
	tls    bool
	h2     bool // HTTP/2 over TLS; else HTTP/1.1
	resume bool // the session of the connection before
	most   int  // requests, or with HTTP/2 rounds, on a connection

	s       *scene
	resumed *atomic.Int64
	cache   tls.ClientSessionCache
	c       net.Conn
	r       *bufio.Reader
	streams *http2.ClientConn
	used    int
}

func (l *lane) drop() {
	if l.c != nil {
		_ = l.c.Close()
		l.c, l.streams = nil, nil
	}
}

// connect opens the connection unless there is one.
func (l *lane) connect() {
	if l.c != nil {
		return
	}
	addr, cfg := l.s.router.HTTP, (*tls.Config)(nil)
	if l.tls || l.h2 {
		addr, cfg = l.s.router.HTTPS, clientTLS(l.host)
	}
	if l.h2 {
		cfg.NextProtos = []string{"h2"}
	}
	if l.resume {
		if l.cache == nil {
			l.cache = tls.NewLRUClientSessionCache(1)
		}
		cfg.ClientSessionCache = l.cache
	}
	l.c, l.used = dial(addr, cfg), 0
	if l.h2 {
		l.streams = site.Must(new(http2.Transport).NewClientConn(l.c))
	} else if l.r = bufio.NewReader(l.c); l.resume && l.c.(*tls.Conn).ConnectionState().DidResume {
		l.resumed.Add(1)
	}
}

// send sends a request of HTTP/1.1, without its Host and the end of its head.
func (l *lane) send(head string, body []byte) {
	l.connect()
	l.used++
	_ = l.c.SetDeadline(time.Now().Add(patience))
	_, err := l.c.Write(append([]byte(head+"Host: "+l.host+"\r\n\r\n"), body...))
	site.Checkf(err, "cannot send request %d of a connection", l.used)
}

// answer sends a request and writes the body of the answer to sink.
func (l *lane) answer(head string, body []byte, sink io.Writer) *http.Response {
	l.send(head, body)
	resp, err := http.ReadResponse(l.r, nil)
	if err == nil {
		_, err = io.Copy(sink, resp.Body)
		_ = resp.Body.Close()
	}
	site.Checkf(err, "cannot read answer %d of a connection", l.used)
	if l.used >= l.most || resp.Close {
		l.drop()
	}
	return resp
}

// ask is answer whose status must be 200, and returns its body.
func (l *lane) ask(head string, body []byte) (text string, cookies []*http.Cookie) {
	var b strings.Builder
	resp := l.answer(head, body, &b) //nolint:bodyclose // answer closes it
	isOK(resp)
	return b.String(), resp.Cookies()
}

func isOK(resp *http.Response) {
	if resp.StatusCode != http.StatusOK {
		site.Stopf("the answer is %s", resp.Status)
	}
}

// pod asks for the name of a pod.
func (l *lane) pod(fields string) (name string, cookies []*http.Cookie) {
	name, cookies = l.ask("GET / HTTP/1.1\r\n"+fields, nil)
	site.Must(netip.ParseAddrPort(name))
	return name, cookies
}

func page(l *lane) { l.pod("") }

func lastPage(l *lane) { l.pod("Connection: close\r\n") }

// session is one whose requests stay with a pod as long as that serves.
type session struct {
	cookie, pod string
	requests    int
}

func (k *session) page(l *lane) {
	const size = 200 // requests of a session
	if k.requests == size {
		k.requests, k.cookie = 0, ""
	}
	k.requests++
	fields := ""
	if k.cookie != "" {
		fields = "Cookie: " + k.cookie + "\r\n"
	}
	name, cookies := l.pod(fields)
	before := k.pod
	k.pod = name
	switch {
	case k.cookie != "" && name != before && l.s.serves(before):
		site.Stopf("the cookie of pod %s led to %s", before, name)
	case len(cookies) == 1:
		k.cookie = cookies[0].Name + "=" + cookies[0].Value
	case k.cookie == "" || name != before:
		site.Stopf("%d cookies came with pod %s", len(cookies), name)
	}
}

// posts sends bodies, with Content-Length and chunked one after the other.
func posts() func(*lane) {
	const bodySize, chunkSize = 96 << 10, 10_000
	n := 0
	return func(l *lane) {
		body := bytes.Repeat([]byte{byte(n)}, bodySize-n%1000)
		want := fmt.Sprintf("%d %08x", len(body), crc32.ChecksumIEEE(body))
		head := fmt.Sprintf("POST /echo HTTP/1.1\r\nContent-Length: %d\r\n", len(body))
		if n++; n%2 == 0 {
			head = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
			var b bytes.Buffer
			for piece := range slices.Chunk(body, chunkSize) {
				fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
			}
			b.WriteString("0\r\n\r\n")
			body = b.Bytes()
		}
		if got, _ := l.ask(head, body); got != want {
			site.Stopf("the pod got %s, want %s", got, want)
		}
	}
}

// length counts what is written.
type length int64

func (l *length) Write(p []byte) (int, error) {
	*l += length(len(p))
	return len(p), nil
}

func download(l *lane) {
	var n length
	isOK(l.answer("GET /large HTTP/1.1\r\n", nil, &n)) //nolint:bodyclose // answer closes it
	if n != largeSize {
		site.Stopf("a download has %d bytes, want %d", n, largeSize)
	}
}

// sip reads a part of a download slowly, over a connection of its own, and leaves.
func sip(l *lane) {
	const size, count, pause = 16 << 10, 10, 50 * time.Millisecond
	l.drop()
	defer l.drop()
	l.send("GET /large HTTP/1.1\r\n", nil)
	b := make([]byte, size)
	for range count {
		_, err := io.ReadFull(l.c, b)
		site.Checkf(err, "cannot read a download slowly")
		<-time.NewTimer(pause).C // that is how slow they are
	}
}

// round connects for a round of requests over HTTP/2, which must end within patience.
func (l *lane) round() (context.Context, context.CancelFunc) {
	if l.used >= l.most {
		l.drop()
	}
	l.connect()
	l.used++
	return context.WithTimeout(context.Background(), patience)
}

const parallelStreams = 10

// parallelPages asks for pages, several at once. Unlike the client of net/http this one repeats nothing.
func parallelPages(l *lane) {
	ctx, cancel := l.round()
	defer cancel()
	site.Together(parallelStreams, parallelStreams, func(int) {
		resp := l.begin(ctx, http.MethodGet, "/", http.NoBody)
		defer resp.Body.Close()
		site.Must(netip.ParseAddrPort(string(site.Must(io.ReadAll(resp.Body)))))
	})
}

// begin begins a request over HTTP/2 whose answer must be 200. The caller closes its body.
func (l *lane) begin(ctx context.Context, method, path string, body io.Reader) *http.Response {
	q := site.Must(http.NewRequestWithContext(ctx, method, "https://"+l.host+path, body))
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/grpc")
		q.Header.Set("TE", "trailers")
	}
	resp, err := l.streams.RoundTrip(q)
	site.Checkf(err, "cannot ask for %s", path)
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
	}
	isOK(resp)
	return resp
}

// glance begins a download on a stream that is given up after a look at it; the connection is used again.
func glance(l *lane) {
	ctx, cancel := l.round()
	defer cancel()
	resp := l.begin(ctx, http.MethodGet, "/large", http.NoBody)
	defer resp.Body.Close() // which resets the stream
	_, err := io.ReadFull(resp.Body, make([]byte, 1000))
	site.Checkf(err, "cannot look at a download")
}

// call is a stream that goes both ways, as those of gRPC do: each message is answered before the next is sent.
func call(l *lane) {
	ctx, cancel := l.round()
	defer cancel()
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	resp := l.begin(ctx, http.MethodPost, "/stream", in)
	defer resp.Body.Close()
	for i := range 10 {
		message := fmt.Sprintf("message %d", i)
		_, err := io.WriteString(out, message)
		site.Checkf(err, "cannot send message %d of a call", i)
		got := make([]byte, len(message))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != message {
			site.Stopf("message %d of a call came back as %q: %w", i, got, err)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		site.Stopf("a call ended with %q: %w", rest, err)
	}
	if status := resp.Trailer.Get("Grpc-Status"); status != "0" {
		site.Stopf("the status of a call is %q", status)
	}
}

// patience is how long a client waits for anything.
const patience = 30 * time.Second

// clientTLS is the client's side; it does not verify, since certificates sign themselves.
func clientTLS(host string) *tls.Config {
	return &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
}

// dial connects to the router, over TLS unless cfg is nil.
func dial(addr string, cfg *tls.Config) net.Conn {
	d := &net.Dialer{Timeout: patience}
	if cfg == nil {
		return site.Must(d.Dial("tcp", addr))
	}
	return site.Must(tls.DialWithDialer(d, "tcp", addr, cfg))
}
