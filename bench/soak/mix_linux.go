package soak

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

// kind is a sort of client. Each client has a lane of its own, and a function that makes some requests on it, one after the other or
// all at once. After an error the lane begins anew. Nothing is repeated: what fails has failed.
type kind struct {
	name    string
	clients int
	every   time.Duration // from one round of requests to the next
	lane    lane
	client  func() func(l *lane) error
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
		{"sticky cookies", 2, often, lane{host: hostSticky, most: 30}, func() func(*lane) error { return new(session).page }, 0},
	}
}

// always is a client that remembers nothing.
func always(do func(l *lane) error) func() func(*lane) error {
	return func() func(*lane) error { return do }
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
		err := do(&l)
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
func (l *lane) connect() (err error) {
	if l.c != nil {
		return nil
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
	c, err := dial(addr, cfg)
	if err != nil {
		return err
	}
	if l.h2 {
		if l.streams, err = new(http2.Transport).NewClientConn(c); err != nil {
			_ = c.Close()
			return fmt.Errorf("cannot begin with HTTP/2: %w", err)
		}
	} else if l.r = bufio.NewReader(c); l.resume && c.(*tls.Conn).ConnectionState().DidResume {
		l.resumed.Add(1)
	}
	l.c, l.used = c, 0
	return nil
}

// ask sends a request of HTTP/1.1, without its Host and the end of its head, and writes the body of the answer to sink. An answer
// other than 200 is an error; its status is returned even so.
func (l *lane) ask(head string, body []byte, sink io.Writer) (status int, cookies []*http.Cookie, err error) {
	if err := l.connect(); err != nil {
		return 0, nil, err
	}
	l.used++
	_ = l.c.SetDeadline(time.Now().Add(patience))
	if _, err = l.c.Write(append([]byte(head+"Host: "+l.host+"\r\n\r\n"), body...)); err != nil {
		return 0, nil, fmt.Errorf("cannot send request %d of a connection: %w", l.used, err)
	}
	resp, err := http.ReadResponse(l.r, nil)
	if err == nil {
		_, err = io.Copy(sink, resp.Body)
		_ = resp.Body.Close()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot read answer %d of a connection: %w", l.used, err)
	}
	if l.used >= l.most || resp.Close {
		l.drop()
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", resp.Status)
	}
	return resp.StatusCode, resp.Cookies(), err
}

// pod asks for the name of a pod.
func (l *lane) pod(fields string) (name string, cookies []*http.Cookie, err error) {
	var text strings.Builder
	_, cookies, err = l.ask("GET / HTTP/1.1\r\n"+fields, nil, &text)
	if err == nil {
		_, err = netip.ParseAddrPort(text.String())
	}
	return text.String(), cookies, err
}

func page(l *lane) error {
	_, _, err := l.pod("")
	return err
}

func lastPage(l *lane) error {
	_, _, err := l.pod("Connection: close\r\n")
	return err
}

// session is one whose requests stay with a pod as long as that serves.
type session struct {
	cookie, pod string
	requests    int
}

func (k *session) page(l *lane) error {
	const size = 200 // requests of a session
	if k.requests == size {
		k.requests, k.cookie = 0, ""
	}
	k.requests++
	fields := ""
	if k.cookie != "" {
		fields = "Cookie: " + k.cookie + "\r\n"
	}
	name, cookies, err := l.pod(fields)
	if err != nil {
		return err
	}
	before := k.pod
	k.pod = name
	switch {
	case k.cookie != "" && name != before && l.s.serves(before):
		return fmt.Errorf("the cookie of pod %s led to %s", before, name)
	case len(cookies) == 1:
		k.cookie = cookies[0].Name + "=" + cookies[0].Value
	case k.cookie == "" || name != before:
		return fmt.Errorf("%d cookies came with pod %s", len(cookies), name)
	}
	return nil
}

// posts sends bodies, with Content-Length and chunked one after the other.
func posts() func(*lane) error {
	const bodySize, chunkSize = 96 << 10, 10_000
	n := 0
	return func(l *lane) error {
		body := bytes.Repeat([]byte{byte(n)}, bodySize-n%1000)
		want := fmt.Sprintf("%d %08x", len(body), crc32.ChecksumIEEE(body))
		head := fmt.Sprintf("POST /echo HTTP/1.1\r\nContent-Length: %d\r\n", len(body))
		if n++; n%2 == 0 {
			head = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
			var b bytes.Buffer
			for len(body) > 0 {
				size := min(chunkSize, len(body))
				fmt.Fprintf(&b, "%x\r\n%s\r\n", size, body[:size])
				body = body[size:]
			}
			b.WriteString("0\r\n\r\n")
			body = b.Bytes()
		}
		var got strings.Builder
		_, _, err := l.ask(head, body, &got)
		if err == nil && got.String() != want {
			err = fmt.Errorf("the pod got %s, want %s", got.String(), want)
		}
		return err
	}
}

// length counts what is written.
type length int64

func (l *length) Write(p []byte) (int, error) {
	*l += length(len(p))
	return len(p), nil
}

func download(l *lane) error {
	var n length
	_, _, err := l.ask("GET /large HTTP/1.1\r\n", nil, &n)
	if err == nil && n != largeSize {
		err = fmt.Errorf("a download has %d bytes, want %d", n, largeSize)
	}
	return err
}

// sip reads a part of a download slowly, over a connection of its own, and leaves.
func sip(l *lane) error {
	const size, count, pause = 16 << 10, 10, 50 * time.Millisecond
	l.drop()
	if err := l.connect(); err != nil {
		return err
	}
	defer l.drop()
	_ = l.c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(l.c, "GET /large HTTP/1.1\r\nHost: "+l.host+"\r\n\r\n"); err != nil {
		return fmt.Errorf("cannot ask for a download: %w", err)
	}
	b := make([]byte, size)
	for range count {
		if _, err := io.ReadFull(l.c, b); err != nil {
			return fmt.Errorf("cannot read a download slowly: %w", err)
		}
		<-time.NewTimer(pause).C // that is how slow they are
	}
	return nil
}

// round connects for a round of requests over HTTP/2, which must end within patience.
func (l *lane) round() (context.Context, context.CancelFunc, error) {
	if l.used >= l.most {
		l.drop()
	}
	err := l.connect()
	l.used++
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	return ctx, cancel, err
}

const parallelStreams = 10

// parallelPages asks for pages, several at once. Unlike the client of net/http this one repeats nothing.
func parallelPages(l *lane) error {
	ctx, cancel, err := l.round()
	defer cancel()
	if err != nil {
		return err
	}
	all := make([]func() (netip.AddrPort, error), parallelStreams)
	for i := range all {
		all[i] = func() (netip.AddrPort, error) {
			status, text, err := testhttp.Get(ctx, l.streams, "https://"+l.host+"/", "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("the answer is %d", status)
			}
			if err != nil {
				return netip.AddrPort{}, err
			}
			return netip.ParseAddrPort(string(text))
		}
	}
	_, err = site.AtOnce(all)
	return err
}

// begin begins a request over HTTP/2 whose answer must be 200. The caller closes its body.
func (l *lane) begin(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, "https://"+l.host+path, body)
	if err != nil {
		return nil, fmt.Errorf("cannot make a request: %w", err)
	}
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/grpc")
		q.Header.Set("TE", "trailers")
	}
	resp, err := l.streams.RoundTrip(q)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("the answer is %s", resp.Status)
	}
	return resp, nil
}

// glance begins a download on a stream that is given up after a look at it; the connection is used again.
func glance(l *lane) error {
	ctx, cancel, err := l.round()
	defer cancel()
	if err != nil {
		return err
	}
	resp, err := l.begin(ctx, http.MethodGet, "/large", http.NoBody)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // which resets the stream
	if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
		return fmt.Errorf("cannot look at a download: %w", err)
	}
	return nil
}

// call is a stream that goes both ways, as those of gRPC do: each message is answered before the next is sent.
func call(l *lane) error {
	ctx, cancel, err := l.round()
	defer cancel()
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	resp, err := l.begin(ctx, http.MethodPost, "/stream", in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for i := range 10 {
		message := fmt.Sprintf("message %d", i)
		if _, err := io.WriteString(out, message); err != nil {
			return fmt.Errorf("cannot send message %d of a call: %w", i, err)
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != message {
			return fmt.Errorf("message %d of a call came back as %q: %w", i, got, err)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		return fmt.Errorf("a call ended with %q: %w", rest, err)
	}
	if status := resp.Trailer.Get("Grpc-Status"); status != "0" {
		return fmt.Errorf("the status of a call is %q", status)
	}
	return nil
}

// patience is how long a client waits for anything.
const patience = 30 * time.Second

// clientTLS is the client's side; it does not verify, since certificates sign themselves.
func clientTLS(host string) *tls.Config {
	return &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
}

// dial connects to the router, over TLS unless cfg is nil.
func dial(addr string, cfg *tls.Config) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	if cfg == nil {
		return c, nil
	}
	t := tls.Client(c, cfg)
	_ = c.SetDeadline(time.Now().Add(patience))
	if err := t.Handshake(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot finish the handshake: %w", err), c.Close())
	}
	return t, c.SetDeadline(time.Time{})
}
