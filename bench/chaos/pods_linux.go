package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
)

// body is what every pod answers; anything else is a wrong answer.
const (
	body = line + line + line + line + line + line + line + line
	line = "what a pod answers, to the last byte: 0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ, and then again from front\n"
)

// behaviour is what a pod does with a request.
type behaviour int32

const (
	answers  behaviour = iota
	resets             // resets the connection once it has the request
	hangs              // says nothing
	halves             // sends half an answer and ends the connection, each time in another way
	babbles            // answers what is no HTTP
	trickles           // answers a byte at a time
)

// pod is a server on an address of its own.
type pod struct {
	*site.Backend

	does  atomic.Int32 // a behaviour
	asked atomic.Int64 // requests that came
	wrong atomic.Int64 // of them those that were not answered as they should
	http2 bool         // it speaks HTTP/2, and answers
}

// startPod listens on a port of ip.
func startPod(ip netip.Addr, http2 bool) *pod {
	p := &pod{http2: http2}
	p.Backend = site.ServeConns(netip.AddrPortFrom(ip, 0), p.serve)
	return p
}

func (p *pod) serve(c net.Conn) {
	r := bufio.NewReader(c)
	if p.http2 {
		if _, err := r.Peek(1); err == nil { // else it was a health check
			new(http2.Server).ServeConn(peeked{c, r}, &http2.ServeConnOpts{Handler: p})
		}
		return
	}
	for {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		}
		n := p.asked.Add(1)
		how := behaviour(p.does.Load())
		if how != answers {
			p.wrong.Add(1)
		}
		if q.URL.Path == longPath {
			err = long(c)
		} else {
			err = p.answer(c, r, how, n)
		}
		if err != nil {
			return
		}
	}
}

// peeked is a connection of which something was read.
type peeked struct {
	net.Conn
	r io.Reader
}

func (c peeked) Read(p []byte) (int, error) { return c.r.Read(p) }

// ServeHTTP answers over HTTP/2.
func (p *pod) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.asked.Add(1)
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, body) // who does not read it counts it as lost
}

// longPath is answered with more than the kernels and the router take of it.
const longPath = "/long"

// smallBuffer is what a socket takes whose other end takes nothing.
const smallBuffer = 16 << 10

func long(c net.Conn) error {
	const blocks = 64 << 10 // of about a KiB
	if err := c.(*net.TCPConn).SetWriteBuffer(smallBuffer); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", blocks*len(body)); err != nil {
		return err
	}
	for range blocks {
		if _, err := io.WriteString(c, body); err != nil {
			return err
		}
	}
	return nil
}

var errEnd = errors.New("the connection is to end")

// answer answers the n-th request. An error ends the connection.
func (p *pod) answer(c net.Conn, r io.Reader, how behaviour, n int64) error {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	whole := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
	var err error
	switch how {
	case answers:
		_, err = io.WriteString(c, whole)
		return err
	case resets:
		site.Reset(c)
	case hangs:
		_, _ = io.Copy(io.Discard, r) // until the router gives up
	case halves:
		switch n % 3 {
		case 0:
			_, err = io.WriteString(c, whole[:len(whole)-len(body)/2])
		case 1:
			_, err = io.WriteString(c, whole[:len(whole)-len(body)/2])
			site.Reset(c)
		case 2:
			_, err = fmt.Fprintf(c, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(body), body)
		}
	case babbles:
		_, err = io.WriteString(c, []string{"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "\x16\x03\x01\x02\x00", "HTTP/1.1 2000 Many\r\n\r\n"}[n%4])
	case trickles:
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		at := len(whole) - len(body)
		for i := range at {
			if _, err := io.WriteString(c, whole[i:i+1]); err != nil {
				return err
			}
			<-tick.C
		}
		_, err = io.WriteString(c, whole[at:])
		return err
	}
	return errors.Join(errEnd, err)
}
