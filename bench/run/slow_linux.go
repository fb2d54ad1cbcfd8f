package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

// slowAttacks are ways to be slow: arguments of slowhttptest, and the page that is asked for.
var slowAttacks = []struct {
	name, page string
	args       string
}{
	{"slow heads", "", "-H -i 5 -x 24"},
	{"slow bodies", "", "-B -i 5 -s 8192 -x 10"},
	{"slow readers", "large", "-X -w 10 -y 20 -n 5 -z 32"},
}

// slow has slowhttptest attack a router while 8 clients measure how long their requests take, and then lets clients stall for good.
func slow(f *flag.FlagSet) func(*site.T) {
	connections := f.Int("connections", 2000, "slow connections")
	seconds := f.Int("seconds", 60, "how long each attack goes on")
	ratio := f.Float64("ratio", 2, "how many times the quiet 99th percentile that under attack may be")
	kib := f.Int("kib", 64, "KiB of the router's memory that one slow connection may take")
	return func(t *site.T) {
		t.Files(3**connections + 500) // in this process, the router's and the attacker's
		apart := site.Apart()
		if !apart {
			t.Printf("one core: the figures are about the attackers too\n")
		}
		if !site.RealTime() {
			t.Printf("no real-time priority (CAP_SYS_NICE): the figures are also about the time that the attackers take from the client\n")
		}
		s := newSlowed(t, apart)
		length := time.Duration(*seconds) * time.Second
		measuring := length * 3 / 5
		s.watch(measuring / 4) // warms up
		quiet := s.watch(measuring)
		row := func(name string, i impact, ratio, rest string) {
			t.Printf("%-14s %6.2fms %6.2fms %6.2fms  %5s %5.2fms %8.1f %s\n", name, site.Millis(i.P50), site.Millis(i.P99), site.Millis(i.Max), ratio, site.Millis(i.cpu), site.MiB(i.resident), rest)
		}
		t.Printf("%-14s %8s %8s %8s  %5s %7s %8s\n", "", "p50", "p99", "max", "ratio", "CPU/s", "MiB")
		row("quiet", quiet, "", "")
		for _, a := range slowAttacks {
			ctx, end := context.WithCancel(t.Context)
			args := append([]string{"-c", strconv.Itoa(*connections), "-r", strconv.Itoa(*connections), "-l", strconv.Itoa(*seconds), "-p", "3", "-u", s.url + a.page}, strings.Fields(a.args)...)
			cmd := site.LowPriority(exec.CommandContext(ctx, "slowhttptest", args...)) // the client's latencies are not to wait for the attackers
			site.Check(cmd.Start())                                                    // a Debian package
			t.Cleanup(end)
			t.Wait((length - measuring) * 3 / 4) // most of its connections stand
			under := s.watch(measuring)
			open := s.open()
			end()
			_ = cmd.Wait() // it was killed
			times := float64(under.P99) / float64(quiet.P99)
			row(a.name, under, fmt.Sprintf("%.2f", times), fmt.Sprintf("%6d open", open))
			if times > *ratio {
				t.Failf("%s: the 99th percentile is %.2f times the quiet one, want %v at most", a.name, times, *ratio)
			}
			if more := under.resident - quiet.resident; more > int64(*connections**kib)<<10 {
				t.Failf("%s: %.1f MiB more memory, want %d KiB for a connection at most", a.name, site.MiB(more), *kib)
			}
			if !t.Until(clientTimeout+grace, time.Second, func() bool { return s.open() == 0 }) {
				site.Stopf("%d connections are left after %s", s.open(), a.name)
			}
		}
		s.recovers(max(*connections/20, 1), quiet.resident)
	}
}

// slowed is a router that is attacked, before a backend in this process.
type slowed struct {
	*site.T
	router *site.Router
	url    string
}

func newSlowed(t *site.T, apart bool) *slowed {
	backend := t.ServeHTTP(slowPages())
	router := t.Start(site.Config{
		Manifests: site.Route{Host: "localhost", Service: "slow", Annotations: site.NoCookies}.String() + site.Service{Name: "slow", Port: backend.Port()}.String(),
		Alone:     apart,
	})
	return &slowed{t, router, "http://" + strings.Replace(router.HTTP, "127.0.0.1", "localhost", 1) + "/"}
}

// largeBody is more than the router queues for one client. Much more would only fill the memory that the kernel has for all TCP
// connections of this machine, where attackers, router and backend live together.
const largeBody = 320 << 10

// hugeBody is more than the kernels of both sides take, too: the router must see that its client does not read.
const hugeBody = 32 << 20

// slowPages reads what is sent and answers /large with largeBody bytes, /huge with hugeBody bytes, everything else with few.
func slowPages() http.Handler {
	large := bytes.Repeat([]byte("x"), largeBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(large)
		case "/huge":
			w.Header().Set("Content-Length", strconv.Itoa(hugeBody))
			site.WriteZeros(w, hugeBody)
		default:
			_, _ = w.Write([]byte("hello\n"))
		}
	})
}

// impact is what clients and the router's process saw in a span of time.
type impact struct {
	site.Latency
	cpu      time.Duration // of the router, per second
	resident int64         // bytes, the most that was seen
}

// watch measures in windows, so that one hiccup of the machine is one of many: of 50th and 99th percentile the medians count.
func (s *slowed) watch(d time.Duration) (i impact) {
	const window = 2 * time.Second
	var p50, p99 []time.Duration
	weigh := func() { i.resident = max(i.resident, s.router.Resident()) }
	before, began := s.router.CPU(), time.Now()
	for n := 0; n == 0 || time.Since(began) < d-window/2; n++ {
		weigh()
		l := slowedClients(s.Context, s.url, min(window, d))
		p50, p99, i.Max = append(p50, l.P50), append(p99, l.P99), max(i.Max, l.Max)
	}
	i.cpu = time.Duration(float64(s.router.CPU()-before) / time.Since(began).Seconds())
	i.P50, i.P99 = site.Median(p50), site.Median(p99)
	weigh()
	return i
}

// slowedClients ask for d at a pace far below what the router can do, with a new connection every so often. A request that fails is
// an error.
func slowedClients(ctx context.Context, url string, d time.Duration) site.Latency {
	const clients, pace, perConnection = 8, 10 * time.Millisecond, 50
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var lines [clients]http.Transport
	for i := range lines {
		lines[i].MaxIdleConnsPerHost = 1
		defer lines[i].CloseIdleConnections()
	}
	l := site.LatencyOf(slices.Concat(site.Paced(ctx, clients, pace, func(i, n int) {
		if n%perConnection == 0 {
			lines[i].CloseIdleConnections()
		}
		site.Check(testhttp.Ask(context.Background(), &lines[i], url, ""))
	})...))
	if l.Max == 0 {
		site.Stopf("no request was answered")
	}
	return l
}

// open is how many client connections the router has.
func (s *slowed) open() int {
	return int(s.router.Metric(s.Context, "turnout_connections_open"))
}

// recovers looks that everybody who stalls is answered or cut off in time, and that memory is given back after that.
func (s *slowed) recovers(stalling int, resident int64) {
	if err := stallAll(s.Context, s.router.HTTP, stalling); err != nil {
		s.Failf("%v", err)
		return
	}
	s.Printf("stalled clients: all answered or cut off in time\n")
	const slack, patience = 64 << 20, 3 * time.Minute // a collection, and a minute in which nothing happens
	now := int64(0)
	if !s.Until(patience, time.Second, func() bool { now = s.router.Resident(); return now <= resident+slack }) {
		s.Failf("memory is not given back: %d MiB, quiet %d MiB", now>>20, resident>>20)
		return
	}
	s.Printf("afterwards: %.1f MiB\n", site.MiB(now))
}

// The router's defaults, and what a busy machine may need on top.
const (
	headTimeout   = 10 * time.Second
	clientTimeout = 30 * time.Second
	grace         = 8 * time.Second
)

// stalled is a client that begins a request and then does nothing.
type stalled struct {
	name   string
	sends  string
	reads  bool          // what comes is read; else only what has come when the time is over
	within time.Duration // the connection ends
	answer string        // what the answer begins with
}

var stalls = []stalled{
	{"a head that does not end", "GET / HTTP/1.1\r\nHost: localhost\r\nX-", true, headTimeout, "HTTP/1.1 408 "},
	{"a body that does not end", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc", true, clientTimeout, "HTTP/1.1 408 "},
	{"a reader that stops", "GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n", false, clientTimeout, "HTTP/1.1 200 "},
}

// stallAll stalls n connections of each kind and says of which kinds one was not answered, or not ended, in time.
func stallAll(ctx context.Context, addr string, n int) error {
	var mu sync.Mutex
	seen := map[string]int{}
	site.Together(n*len(stalls), n*len(stalls), func(i int) {
		if err := site.Try(func() { stalls[i%len(stalls)].wait(ctx, addr) }); err != nil {
			mu.Lock()
			defer mu.Unlock()
			seen[err.Error()]++
		}
	})
	var bad []error
	for text, times := range seen {
		bad = append(bad, fmt.Errorf("%s (%d of %d)", text, times, n))
	}
	return errors.Join(bad...)
}

func (s *stalled) wait(ctx context.Context, addr string) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	site.Checkf(err, "cannot connect")
	defer c.Close()
	if !s.reads {
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) // makes it sooner, not different
	}
	_, err = c.Write([]byte(s.sends))
	site.Checkf(err, "cannot send %s", s.name)
	over := time.Now().Add(s.within + grace)
	if !s.reads {
		site.Check(site.Pause(ctx, time.Until(over)))
		over = over.Add(2 * time.Second)
	}
	_ = c.SetReadDeadline(over)
	var got bytes.Buffer
	_, err = io.Copy(&got, c)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		site.Stopf("%s: the connection lives after %s", s.name, s.within+grace)
	case !strings.HasPrefix(got.String(), s.answer):
		site.Stopf("%s: want %q, got %.60q", s.name, s.answer, got.String())
	}
}
