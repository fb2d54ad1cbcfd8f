package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// throttle lets a process run for a hundredth of the time, as on a machine that has no more for it. What it returns ends that.
func throttle(t *testing.T, p *process) (end func()) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	pulse := func(sig syscall.Signal, d time.Duration) (more bool) {
		if err := p.Process.Signal(sig); err != nil {
			t.Error(err)
			return false
		}
		select {
		case <-time.After(d):
			return true
		case <-stop:
			return false
		}
	}
	go func() {
		defer close(ended)
		// The faster the machine, the longer it has to stand until what is left is not enough.
		stands := 250 * time.Millisecond
		for pulse(syscall.SIGSTOP, stands) && pulse(syscall.SIGCONT, 3*time.Millisecond) {
			stands = min(stands+stands/20, time.Second)
		}
		_ = p.Process.Signal(syscall.SIGCONT) // a process that has ended is reported by others
	}()
	end = sync.OnceFunc(func() { close(stop); <-ended })
	t.Cleanup(end)
	return end
}

// crowd is clients who ask without a pause, each on a connection that it keeps while the router does.
type crowd struct {
	t           *testing.T
	addr        string
	request     []byte
	stop        chan struct{}
	running     sync.WaitGroup
	over        atomic.Bool // what goes wrong now is because the test ends
	ok, refused atomic.Int64
	answered    chan struct{} // has an item after each answer
}

// until waits until counter is at least n.
func (c *crowd) until(counter *atomic.Int64, n int64) {
	c.t.Helper()
	late := time.After(3 * time.Minute)
	for counter.Load() < n {
		select {
		case <-c.answered:
		case <-late:
			c.t.Fatalf("after three minutes %d were served and %d refused", c.ok.Load(), c.refused.Load())
		}
	}
}

func (c *crowd) client() {
	for {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			if !c.over.Load() {
				c.t.Error(err)
			}
			return
		}
		more, err := c.connection(conn)
		conn.Close()
		if err != nil && !c.over.Load() {
			c.t.Error(err)
		}
		if !more || err != nil {
			return
		}
	}
}

// connection asks until the router closes, or all is over.
func (c *crowd) connection(conn net.Conn) (more bool, err error) {
	in := bufio.NewReader(conn)
	for {
		select {
		case <-c.stop:
			return false, nil
		default:
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return false, err
		}
		if _, err := conn.Write(c.request); err != nil {
			return false, err
		}
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			return false, err
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			return false, err
		}
		switch {
		case a.StatusCode == 200:
			c.ok.Add(1)
		case a.StatusCode == 503 && a.Header.Get("Retry-After") == "1":
			c.refused.Add(1)
		case a.StatusCode == 504: // its time was over: what a client of so late a router may get as well
		default:
			return false, fmt.Errorf("status %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
		}
		select {
		case c.answered <- struct{}{}:
		default:
		}
		if a.Close {
			return true, nil
		}
	}
}

// TestLateLoops: a router that cannot keep up leaves new connections in the backlog, then refuses requests too, and says so;
// it is alive, and it recovers by itself.
func TestLateLoops(t *testing.T) {
	t.Parallel()
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--threads", "1")
	// A request of many fields takes the router much longer than it takes to send it.
	fields := strings.Repeat("X-Field: "+strings.Repeat("of no consequence ", 10)+"\r\n", 90)
	c := &crowd{t: t, addr: p.http, stop: make(chan struct{}), answered: make(chan struct{}, 1), request: []byte("GET / HTTP/1.1\r\nHost: front.example.com\r\n" + fields + "\r\n")}
	for range 150 {
		c.running.Go(c.client)
	}
	stop := sync.OnceFunc(func() { close(c.stop) })
	defer func() {
		c.over.Store(true)
		_ = p.Process.Kill() // it has ended already, unless something went wrong
		stop()
		c.running.Wait()
	}()
	c.until(&c.ok, 200)

	end := throttle(t, p)
	p.awaits(`turnout_overload{reason="late"} 1`)
	c.until(&c.refused, 1)
	await(t, "connections wait", func() bool {
		if status, _ := get(t, "http://"+p.admin+"/healthz", ""); status != http.StatusOK {
			t.Errorf("/healthz answers %d", status)
		}
		_, text := get(t, "http://"+p.admin+"/metrics", "")
		_, n, _ := strings.Cut(text, "\nturnout_connections_waiting{port=\"http\"} ")
		return n != "" && n[0] != '0'
	})
	end()

	p.awaits(`turnout_overload{reason="late"} 0`, `turnout_overload{reason="memory"} 0`, `turnout_connections_waiting{port="http"} 0`)
	await(t, "it is ready again", func() bool {
		status, _ := get(t, "http://"+p.admin+"/healthz/ready", "")
		return status == http.StatusOK
	})
	refused, ok := c.refused.Load(), c.ok.Load()
	c.until(&c.ok, ok+200)
	stop()
	c.running.Wait()
	t.Logf("%d requests were served and %d refused until it recovered", ok, refused)
	if late := p.line("too much to do: new work waits or is refused"); late["reason"] != "late" {
		t.Errorf("the log says %v", late)
	}
	p.stopIn(syscall.SIGTERM, serving, "stopped")
}
