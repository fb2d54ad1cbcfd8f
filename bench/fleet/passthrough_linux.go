package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// passthrough opens so many connections that are passed through, all at the same time, has all of them used once more and
// closed one direction after the other.
func passthrough(ctx context.Context, o *options) error {
	if err := makeTunnels(&o.number); err != nil {
		return err
	}
	r, err := startRig(ctx, o, false)
	if err != nil {
		return err
	}
	defer r.stop()
	before, err := r.Resident()
	if err != nil {
		return err
	}
	files, err := r.Descriptors()
	if err != nil {
		return err
	}
	began := time.Now()
	all, err := startClients(ctx, r, "through", o.number)
	if err != nil {
		return err
	}
	opened := time.Since(began)
	after, err := r.Resident()
	if err != nil {
		return errors.Join(err, all.close())
	}
	open, err := r.Descriptors()
	if err != nil {
		return errors.Join(err, all.close())
	}
	if err := all.close(); err != nil {
		return fmt.Errorf("cannot use the connections to their end: %w", err)
	}
	fmt.Printf("%d connections passed through, opened in %v, all used and closed; %.2f KiB and %.2f descriptors each\n",
		o.number, opened.Round(time.Millisecond), float64(after-before)/1024/float64(o.number), float64(open-files)/float64(o.number))
	return nil
}

// hello returns the ClientHello of a client, its records as they are sent.
func hello(cfg *tls.Config) []byte {
	var sent listener
	_ = tls.Client(&sent, cfg).Handshake() // it fails once the hello is sent
	return sent.said
}

// listener is a connection that keeps what is sent and answers nothing.
type listener struct {
	net.Conn
	said []byte
}

func (l *listener) Write(p []byte) (int, error) {
	l.said = append(l.said, p...)
	return len(p), nil
}

func (*listener) Read([]byte) (int, error)         { return 0, io.EOF }
func (*listener) Close() error                     { return nil }
func (*listener) SetDeadline(time.Time) error      { return nil }
func (*listener) SetWriteDeadline(time.Time) error { return nil }

// openThrough opens a connection that is passed through and waits for the echo of its ClientHello.
func openThrough(addr string, said []byte) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	return c, echoed(c, said)
}

func echoed(c net.Conn, p []byte) error {
	if _, err := c.Write(p); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return until(c, func(got []byte) bool { return bytes.Equal(got, p) })
}

// finishThrough uses a connection once more, ends its own direction and waits for the end of the other.
func finishThrough(c net.Conn) error {
	if err := echoed(c, slices.Repeat([]byte("x"), 1000)); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return fmt.Errorf("cannot end a direction: %w", err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %d bytes and %w instead of the end", n, err)
	}
	return nil
}
