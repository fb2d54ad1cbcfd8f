package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// clientWord is the first argument of a process of clients, clientsReady its line when all connections are open.
const (
	clientWord   = "client-of-fleet"
	clientsReady = "open"
)

// clientMain opens n connections, sends one request on each, says so, and holds them until its input ends. The arguments are
// the kind, the addresses of HTTP and of TLS, and n.
func clientMain(args []string) error {
	if len(args) == 3 && args[0] == stormWord {
		return stormMain(args[1], args[2])
	}
	if len(args) != 4 {
		return errors.New("cannot be a client: four arguments are wanted")
	}
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("cannot be a client: %w", err)
	}
	open := openers(args[1], args[2])[args[0]]
	if open == nil {
		return fmt.Errorf("cannot be a client of kind %q", args[0])
	}
	conns := make([]net.Conn, n)
	const parallel = 16
	var all sync.WaitGroup
	errs := make([]error, parallel)
	for w := range parallel {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil; i += parallel {
				conns[i], errs[w] = open()
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err //nolint:wrapcheck // our own
	}
	fmt.Println(clientsReady)
	_, _ = io.Copy(io.Discard, os.Stdin)
	var failed error
	for _, c := range conns {
		if args[0] == "through" && failed == nil {
			failed = finishThrough(c)
		}
		_ = c.Close()
	}
	return failed
}

// openers open a connection of each kind and use it once.
func openers(plain, secure string) map[string]func() (net.Conn, error) {
	through := hello(clientTLS(hostPassthrough, tls.VersionTLS13))
	overTLS := func(version uint16, ask func(net.Conn) error, protocols ...string) func() (net.Conn, error) {
		cfg := clientTLS(hostECDSA, version, protocols...)
		return func() (net.Conn, error) {
			c, err := net.DialTimeout("tcp", secure, 10*time.Second)
			if err != nil {
				return nil, fmt.Errorf("cannot connect: %w", err)
			}
			t := tls.Client(c, cfg)
			return t, ask(t)
		}
	}
	return map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) {
			c, err := net.DialTimeout("tcp", plain, 10*time.Second)
			if err != nil {
				return nil, fmt.Errorf("cannot connect: %w", err)
			}
			return c, ask1(c)
		},
		"tls13":   overTLS(tls.VersionTLS13, ask1),
		"tls12":   overTLS(tls.VersionTLS12, ask1),
		"h2":      overTLS(tls.VersionTLS13, ask2, "h2"),
		"through": func() (net.Conn, error) { return openThrough(secure, through) },
	}
}

// ask1 sends a request over HTTP/1.1 and reads its answer.
func ask1(c net.Conn) error {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+hostECDSA+"\r\n\r\n"); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return until(c, func(p []byte) bool { return bytes.HasSuffix(p, []byte("hello\n")) })
}

// until reads until done is satisfied with what has come.
func until(c net.Conn, done func([]byte) bool) error {
	var p [2 << 10]byte
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for n := 0; ; {
		k, err := c.Read(p[n:])
		if n += k; done(p[:n]) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read an answer: %w, got %q", err, p[:n])
		}
	}
}

// ask2 sends a request over HTTP/2 (RFC 9113) and reads its answer.
func ask2(c net.Conn) error {
	frame := func(kind, flags, stream byte, payload []byte) []byte {
		return append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}, payload...)
	}
	head := append([]byte{0x82, 0x87, 0x84, 0x41, byte(len(hostECDSA))}, hostECDSA...) // GET, https, /, :authority
	request := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, nil)...)
	request = append(request, frame(4, 1, 0, nil)...) // the router's SETTINGS are acknowledged before they are read
	if _, err := c.Write(append(request, frame(1, 5, 1, head)...)); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return until(c, func(p []byte) bool {
		for len(p) >= 9 {
			length := int(p[0])<<16 | int(binary.BigEndian.Uint16(p[1:]))
			if p[3] == 0 && p[4]&1 != 0 && len(p) >= 9+length { // DATA with END_STREAM
				return true
			}
			p = p[min(9+length, len(p)):]
		}
		return false
	})
}
