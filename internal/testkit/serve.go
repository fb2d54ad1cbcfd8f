package testkit

import (
	"bytes"
	"net"
	"slices"
	"testing"
)

// Serve accepts connections on loopback until the test ends, each on a goroutine of its own, and returns its address. It is
// serve that closes them.
func Serve(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return ln.Addr().String()
}

// Answering is an endpoint on loopback that serves connections with AnswerHeads.
func Answering(t testing.TB, answer string) string {
	t.Helper()
	said := []byte(answer)
	return Serve(t, func(c net.Conn) { AnswerHeads(c, said) })
}

// AnswerHeads answers every request head of a connection with the same bytes, without allocating once it has seen the longest.
// Requests have no body.
func AnswerHeads(c net.Conn, answer []byte) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	n := 0
	for {
		if n == len(buf) {
			buf = slices.Grow(buf, n)[:2*n]
		}
		k, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += k
		for {
			i := bytes.Index(buf[:n], []byte("\r\n\r\n"))
			if i < 0 {
				break
			}
			n = copy(buf, buf[i+4:n])
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}
