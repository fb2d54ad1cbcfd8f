package admin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/tls"

	"turnout/internal/bound"
)

// startLimited is a server with other limits, ready.
func startLimited(t *testing.T, l limits, change func(*Config)) (testServer, *bound.Counts) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counts := new(bound.Counts)
	ready := make(chan struct{})
	close(ready)
	cfg := Config{
		Ready: ready, Routes: listOf(), Bounds: counts, Log: func(err error) { t.Error(err) },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 1\n") }),
	}
	if change != nil {
		change(&cfg)
	}
	s := newServer(cfg, ln, l)
	go s.run()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return testServer{s, t, nil}, counts
}

// visitor opens a connection from an address of this machine and writes.
func visitor(t *testing.T, to, from, text string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 20 * time.Second}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	t.Cleanup(func() { c.Close() })
	if text != "" {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		go func() {
			_, _ = io.WriteString(c, text) // it may be closed by now
			_ = c.SetWriteDeadline(time.Time{})
		}()
	}
	return c
}

// much is a listing of routes of 10 KB each.
func much(routes int) Listing {
	value := map[string]string{"certificate": strings.Repeat("x", 10_000)}
	return func(string, int) (iter.Seq[any], string) {
		return func(yield func(any) bool) {
			for range routes {
				if !yield(value) {
					return
				}
			}
		}, ""
	}
}

// TestProbesAreServed: whatever others do with their connections, a probe has its answer within a second.
func TestProbesAreServed(t *testing.T) {
	cert, _ := pair(t)
	for i, c := range []struct{ name, text string }{ // the first three also with more connections
		{"nothing", ""},
		{"half a head", "GET /healthz HTTP/1.1\r\nHost: x\r\n"},
		{"reads nothing", "GET /routes HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"half a handshake", "\x16\x03\x01\x02\x00\x01"},
		{"asks again and again, reads nothing", strings.Repeat("GET /healthz?verbose HTTP/1.1\r\nHost: x\r\n\r\n", 2000)},
		{"idle", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"a body without end", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"},
	} {
		for _, n := range []int{600, 2000} {
			if n > 600 && (i > 2 || testing.Short() || raced) {
				continue
			}
			t.Run(fmt.Sprint(c.name, " ", n), func(t *testing.T) {
				s, counts := startLimited(t, defaults(), func(cfg *Config) {
					cfg.Routes, cfg.TLS = much(400), &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
				})
				stop, probes := make(chan struct{}), make(chan int, 1)
				end := sync.OnceFunc(func() { close(stop) })
				defer end()
				go func() { probes <- probe(t, s.Addr().String(), stop) }()
				for range n {
					visitor(t, s.Addr().String(), "127.0.0.1", c.text)
				}
				<-time.After(300 * time.Millisecond)
				end()
				if n := <-probes; n < 5 {
					t.Errorf("only %d probes", n)
				}
				if counts.Of(bound.AdminConnections) == 0 && n > 600 { // some end by themselves
					t.Error("nobody counts connections that are closed")
				}
				s.gate.mu.Lock()
				open := len(s.gate.visits)
				s.gate.mu.Unlock()
				if open > defaults().connections+1 { // one is being let in
					t.Errorf("%d connections are open", open)
				}
			})
		}
	}
}

// probe asks as kubelets do, each time on a connection of its own, and returns how often it was answered.
func probe(t *testing.T, addr string, stop <-chan struct{}) int {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return n
		default:
		}
		path := [...]string{"/healthz", "/healthz/ready"}[n%2]
		resp, err := client.Get("http://" + addr + path)
		if err != nil {
			t.Error(err)
			return n
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(body) != "ok\n" {
			t.Errorf("%s: %d %q, %v", path, resp.StatusCode, body, err)
		}
	}
}

// TestOthersConnectionsStay: who opens many connections loses his own, not those of others.
func TestOthersConnectionsStay(t *testing.T) {
	l := defaults()
	l.connections = 16
	s, counts := startLimited(t, l, nil)
	calm := visitor(t, s.Addr().String(), "127.0.0.2", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	reader := bufio.NewReader(calm)
	expect := func() {
		t.Helper()
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "metric 1\n" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	expect()
	for range 200 {
		visitor(t, s.Addr().String(), "127.0.0.1", "")
	}
	s.get("/healthz", 200, "ok\n")
	if n := counts.Of(bound.AdminConnections); n < 180 {
		t.Errorf("%d connections were closed", n)
	}
	if _, err := io.WriteString(calm, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	expect()
}

// TestSlowVisitors: heads, pauses and readers have their time.
func TestSlowVisitors(t *testing.T) {
	l := limits{connections: 256, head: 200 * time.Millisecond, idle: 200 * time.Millisecond, stall: 200 * time.Millisecond, answer: 5 * time.Second}
	s, counts := startLimited(t, l, func(cfg *Config) { cfg.Routes = much(100_000) })
	for name, text := range map[string]string{
		"nothing": "", "half a head": "GET /healthz HTTP/1.1\r\n", "idle": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body that does not come": "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
	} {
		c := visitor(t, s.Addr().String(), "127.0.0.1", text)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	for begun := time.Now(); counts.Of(bound.AdminConnections) != 2; runtime.Gosched() { // just after they are closed
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%d connections without a whole head are counted", counts.Of(bound.AdminConnections))
		}
	}
	visitor(t, s.Addr().String(), "127.0.0.1", "GET /routes HTTP/1.1\r\nHost: x\r\n\r\n")
	for begun := time.Now(); counts.Of(bound.AdminAnswers) == 0; runtime.Gosched() {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("a reader who takes nothing is waited for")
		}
	}
	if counts.Of(bound.AdminAnswers) != 1 {
		t.Errorf("%d answers ended", counts.Of(bound.AdminAnswers))
	}
}

// TestSlowReaderIsServed: who takes something now and then gets all of it.
func TestSlowReaderIsServed(t *testing.T) {
	l := defaults()
	l.stall = 300 * time.Millisecond
	s, _ := startLimited(t, l, func(cfg *Config) { cfg.Routes = much(3000) })
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /routes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, begun := 0, time.Now()
	for piece := make([]byte, 1<<20); ; {
		n, err := io.ReadFull(c, piece)
		if got += n; err != nil {
			break
		}
		<-time.After(30 * time.Millisecond)
	}
	if took := time.Since(begun); got < 3000*10_000 || took < 2*l.stall {
		t.Errorf("%d bytes in %v", got, took)
	}
}

// TestListingsAreBounded: readers of large answers who do not read cost little memory, only some are answered at a time, and a source has a
// share of them.
func TestListingsAreBounded(t *testing.T) {
	s, counts := startLimited(t, defaults(), func(cfg *Config) { cfg.Routes = much(11_000) })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 250 {
		visitor(t, s.Addr().String(), fmt.Sprint("127.0.0.", 1+i%25), "GET /routes HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	for begun := time.Now(); counts.Of(bound.AdminAnswers) < 250-mostListings; runtime.Gosched() {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%d answers were refused", counts.Of(bound.AdminAnswers))
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 100<<20 {
		t.Errorf("%d MiB more are in use", grown>>20)
	}
	h := s.do("GET", "/routes", 503, "too many answers of this kind are under way; try again later\n")
	if h.Get("Retry-After") == "" {
		t.Error("nobody says when to come again")
	}
	s.get("/metrics", 200, "metric 1\n")
	s.get("/healthz", 200, "ok\n")
}

// TestScrapesAreBounded: so are answers of /metrics, apart from those.
func TestScrapesAreBounded(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s, counts := startLimited(t, defaults(), func(cfg *Config) {
		cfg.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-end
		})
	})
	const ask = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
	first := bufio.NewReader(visitor(t, s.Addr().String(), "127.0.0.1", ask))
	<-begun
	second := bufio.NewReader(visitor(t, s.Addr().String(), "127.0.0.1", ask))
	for full := false; !full; runtime.Gosched() {
		s.scrapes.mu.Lock()
		full = s.scrapes.running == scrapeShare
		s.scrapes.mu.Unlock()
	}
	s.get("/metrics", 503, "too many answers of this kind are under way; try again later\n")
	s.get("/routes", 200, "[]\n")
	if n := counts.Of(bound.AdminAnswers); n != 1 {
		t.Errorf("%d answers were refused", n)
	}
	third := bufio.NewReader(visitor(t, s.Addr().String(), "127.0.0.2", ask)) // another source has a share of its own
	for i, r := range []*bufio.Reader{first, second, third} {
		if i > 0 {
			<-begun // one is gathered at a time
		}
		select {
		case <-begun:
			t.Error("two are gathered at a time")
		default:
		}
		end <- struct{}{}
		if i > 0 {
			continue // which of the two came first nobody knows
		}
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v, %v", resp, err)
		}
	}
	for _, r := range []*bufio.Reader{second, third} {
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v, %v", resp, err)
		}
	}
}

// TestScrape: the text of /metrics is as it was made, in pieces or not, and nobody waits for it for ever.
func TestScrape(t *testing.T) {
	long := strings.Repeat("metric 1\n", 50_000)
	entered, end := make(chan struct{}), make(chan struct{})
	s, counts := startLimited(t, defaults(), func(cfg *Config) {
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			switch r.URL.RawQuery {
			case "teapot":
				w.WriteHeader(http.StatusTeapot)
			case "panic":
				panic(http.ErrAbortHandler)
			case "wait":
				close(entered)
				<-end
			}
			_, _ = io.WriteString(w, long)
			_, _ = io.WriteString(w, "end\n")
		})
	})
	if h := s.do("GET", "/metrics", 200, long+"end\n"); h.Get("Content-Type") != "text/plain" {
		t.Errorf("%v", h)
	}
	s.get("/metrics?teapot", 418, long+"end\n")
	if resp, err := http.Get("http://" + s.Addr().String() + "/metrics?panic"); err == nil {
		resp.Body.Close()
		t.Errorf("answered %d", resp.StatusCode)
	}
	s.do("HEAD", "/metrics", 200, "")
	s.patience = time.Millisecond
	visitor(t, s.Addr().String(), "127.0.0.2", "GET /metrics?wait HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	s.get("/metrics", 503, "too many answers of this kind are under way; try again later\n")
	if counts.Of(bound.AdminAnswers) != 1 {
		t.Error("nobody counts that")
	}
	close(end)
}

// TestRequestsOfAConnection: a connection brings some requests, and ends.
func TestRequestsOfAConnection(t *testing.T) {
	s, counts := startLimited(t, defaults(), nil)
	c := visitor(t, s.Addr().String(), "127.0.0.1", strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", mostRequests+20))
	text, _ := io.ReadAll(c) // it may end with a reset
	if n := bytes.Count(text, []byte("HTTP/1.1 200 OK\r\n")); n != mostRequests || counts.Of(bound.AdminConnections) != 1 {
		t.Errorf("%d answers, %d counted", n, counts.Of(bound.AdminConnections))
	}
}

func TestAnswers(t *testing.T) {
	a := newAnswers(3, 2)
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	if first, second := a.begin(one), a.begin(one); !first || !second || a.begin(one) {
		t.Error("a source has not its share")
	}
	if !a.begin(other) || a.begin(other) {
		t.Error("there are not three in all")
	}
	a.end(one)
	if !a.begin(other) {
		t.Error("a place is not given back")
	}
	a.end(one)
	a.end(other)
	a.end(other)
	if a.running != 0 || len(a.sources) != 0 {
		t.Errorf("%d running, %v", a.running, a.sources)
	}
}

func TestSourceOf(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1/32", "[2001:db8::1:2:3:4]:5": "2001:db8::/64", "[::ffff:192.0.2.1]:5": "192.0.2.1/32", "[fe80::1%eth0]:5": "fe80::/64",
	} {
		if got := sourceOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(in))); got.String() != want {
			t.Errorf("%s: %v, want %s", in, got, want)
		}
	}
	if got := sourceOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("of a UNIX socket: %v", got)
	}
}

// TestListing is what is answered, page by page.
func TestListing(t *testing.T) {
	s, _ := startLimited(t, defaults(), func(cfg *Config) {
		cfg.Routes = listOf(1, "b", map[string]int{"c": 3})
		cfg.Notes = listOf()
	})
	const all = "[\n 1,\n \"b\",\n {\n  \"c\": 3\n }\n]\n"
	if h := s.do("GET", "/routes", 200, all); h.Get("Link") != "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
	s.get("/routes/notes", 200, "[]\n")
	s.get("/routes?limit=0", 200, all)
	s.get("/routes?limit=3", 200, all)
	h := s.do("GET", "/routes?limit=2", 200, "[\n 1,\n \"b\"\n]\n")
	if got := h.Get("Link"); got != `</routes?continue=ns%2F1&limit=2>; rel="next"` {
		t.Errorf("%s", got)
	}
	if h := s.do("GET", "/routes?continue=ns%2F1&limit=2", 200, "[\n {\n  \"c\": 3\n }\n]\n"); h.Get("Link") != "" {
		t.Errorf("%v", h)
	}
	s.get("/routes?limit=x", 400, "limit is not a number from 0 on\n")
	s.get("/routes?limit=-1", 400, "limit is not a number from 0 on\n")
	s.do("HEAD", "/routes", 200, "")
}

// TestPanicIsRecovered: a bug ends one answer, and is logged.
func TestPanicIsRecovered(t *testing.T) {
	var logged bytes.Buffer
	var mu sync.Mutex
	s, _ := startLimited(t, defaults(), func(cfg *Config) {
		cfg.Explain = func(string, string, string) (any, bool) { panic("oops") }
		cfg.Log = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&logged, err)
		}
	})
	if resp, err := http.Get("http://" + s.Addr().String() + "/routes/a/b"); err == nil {
		resp.Body.Close()
		t.Errorf("answered %d", resp.StatusCode)
	}
	s.get("/healthz", 200, "ok\n")
	mu.Lock()
	defer mu.Unlock()
	if !strings.HasPrefix(logged.String(), "BUG: panic while /routes/a/b was answered: oops\n") {
		t.Errorf("logged %q", logged.String())
	}
}

// TestAsked is who needs a login without a user and password.
func TestAsked(t *testing.T) {
	near, far := netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("192.0.2.1/32")
	six := sourceOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:5")))
	for _, c := range []struct {
		login     Login
		near, far bool
	}{
		{Login{}, false, false},
		{Login{Asked: AskRemote}, false, true},
		{Login{Asked: AskAll}, true, true},
		{Login{Asked: AskNobody}, false, false},
		{user("a", "b"), true, true},
		{Login{User: "a", Asked: AskRemote}, true, true},
		{Login{User: "a", Asked: AskNobody}, false, false},
	} {
		if n, f := c.login.asks(near), c.login.asks(far); n != c.near || f != c.far {
			t.Errorf("%+v: near %v, far %v", c.login, n, f)
		}
	}
	remote := Login{Asked: AskRemote}
	if remote.asks(six) {
		t.Error("::1 is asked")
	}
	if remote.matches("Og==") {
		t.Error("an empty user and password are accepted where there are none")
	}
}

// TestExplanationsAreBounded: few requests are explained at a time, by GET and POST alike.
func TestExplanationsAreBounded(t *testing.T) {
	begun, free := make(chan string, 8), make(chan struct{})
	s := startWith(t, func(c *Config) {
		c.Explanations = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- r.Method
			<-free
		})
	})
	base := "http://" + s.Addr().String() + "/explain"
	answers := make(chan int, 8)
	ask := func(method string) {
		r, err := http.NewRequest(method, base, strings.NewReader("x"))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		answers <- resp.StatusCode
	}
	go ask(http.MethodGet)
	go ask(http.MethodPost)
	<-begun
	<-begun
	ask(http.MethodGet) // a third one of the same source
	if status := <-answers; status != http.StatusServiceUnavailable {
		t.Errorf("a third one is answered %d", status)
	}
	close(free)
	for range 2 {
		if status := <-answers; status != http.StatusOK {
			t.Errorf("one of the first is answered %d", status)
		}
	}
	if ask(http.MethodDelete); <-answers != http.StatusMethodNotAllowed {
		t.Error("DELETE is taken")
	}
}
