package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
)

// clientLoad is clients that ask a router without a pause and count what goes wrong.
type clientLoad struct {
	t        *testing.T
	plain    string
	secure   string
	stop     chan struct{}
	running  sync.WaitGroup
	requests atomic.Int64
	refused  atomic.Int64 // connections
	failed   atomic.Int64 // requests
	first    sync.Once

	// The router stops: a client that is refused has come to its end. So has one whose connection is reset before its first
	// answer, because it came between the router's last look at the backlog and its end.
	untilRefused bool
	late         atomic.Int64 // connections that were reset so
}

// over reports whether a client whose connection failed with err has come to its end.
func (l *clientLoad) over(err error) bool {
	switch {
	case !l.untilRefused:
		return false
	case errors.Is(err, syscall.ECONNREFUSED):
		l.refused.Add(1)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		l.late.Add(1)
	default:
		return false
	}
	return true
}

// fail counts a failure and shows the first.
func (l *clientLoad) fail(count *atomic.Int64, what string, err error) {
	count.Add(1)
	l.first.Do(func() { l.t.Errorf("%s: %v", what, err) })
}

func (l *clientLoad) dial(secure bool) (net.Conn, error) {
	if secure {
		return tls.Dial("tcp", l.secure, &tls.Config{ServerName: "app.test", InsecureSkipVerify: true})
	}
	return net.Dial("tcp", l.plain)
}

// http1 asks over HTTP/1.1, with requests on each connection until the router closes it.
// It repeats nothing, other than the client of net/http.
func (l *clientLoad) http1(secure bool, requests int) {
	for {
		c, err := l.dial(secure)
		if err != nil && l.over(err) {
			return
		}
		if err != nil {
			l.fail(&l.refused, "connect", err)
			return
		}
		in := bufio.NewReader(c)
		for n, last := 0, false; n < requests && !last; n++ {
			select {
			case <-l.stop:
				c.Close()
				return
			default:
			}
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
			var resp *http.Response
			if err == nil {
				resp, err = http.ReadResponse(in, nil)
			}
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			if n == 0 && err != nil && l.over(err) {
				c.Close()
				return
			}
			l.requests.Add(1)
			if err != nil || resp.StatusCode != http.StatusOK {
				l.fail(&l.failed, fmt.Sprintf("request %d of a connection, TLS %v", n, secure), fmt.Errorf("%v %w", resp, err))
				break
			}
			last = resp.Close
		}
		c.Close()
	}
}

// http2 asks over HTTP/2; the client of x/net repeats what a GOAWAY says was not processed.
func (l *clientLoad) http2() {
	client := &http.Client{Transport: &http2.Transport{TLSClientConfig: &tls.Config{ServerName: "app.test", InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		q, err := http.NewRequest(http.MethodGet, "https://"+l.secure+"/", nil)
		if err != nil {
			l.t.Error(err)
			return
		}
		q.Host = "app.test"
		resp, err := client.Do(q)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		l.requests.Add(1)
		if err != nil || resp.StatusCode != http.StatusOK {
			l.fail(&l.failed, "HTTP/2", fmt.Errorf("%v %w", resp, err))
		}
	}
}

func (l *clientLoad) start() {
	for range 3 {
		l.running.Go(func() { l.http1(false, 1<<30) })
		l.running.Go(func() { l.http1(true, 1<<30) })
		l.running.Go(func() { l.http1(false, 1) })
	}
	l.running.Go(func() { l.http1(true, 1) })
	if !l.untilRefused { // that client does not tell who refused
		l.running.Go(l.http2)
	}
}

func (l *clientLoad) end() {
	close(l.stop)
	l.running.Wait()
}
