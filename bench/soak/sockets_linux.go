package soak

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"turnout/bench/site"
)

// socket is a WebSocket of a client. A goroutine reads.
type socket struct {
	c      net.Conn
	echoed chan struct{} // a message came
	dead   chan struct{} // closed when reading is over
}

// sockets are WebSockets that do nothing.
type sockets struct {
	all  []*socket
	died atomic.Int64
}

// openSockets opens n of them, every second over TLS.
func openSockets(plain, secure string, n int) (*sockets, error) {
	s := &sockets{all: make([]*socket, n)}
	workers := make([]func() (struct{}, error), 16)
	for w := range workers {
		workers[w] = func() (_ struct{}, err error) {
			for i := w; i < n && err == nil; i += len(workers) {
				s.all[i], err = s.open(plain, secure, i%2 == 1)
			}
			return struct{}{}, err
		}
	}
	if _, err := site.AtOnce(workers); err != nil {
		s.close()
		return nil, fmt.Errorf("cannot open WebSockets: %w", err)
	}
	return s, nil
}

func (s *sockets) open(plain, secure string, overTLS bool) (*socket, error) {
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	addr, cfg := plain, (*tls.Config)(nil)
	if overTLS {
		addr, cfg = secure, clientTLS(hostSocket)
	}
	c, err := dial(addr, cfg)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(c, 512)
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, "GET /socket HTTP/1.1\r\nHost: "+hostSocket+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+key+"\r\n\r\n")
	if err == nil {
		err = switched(r, key)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	k := &socket{c: c, echoed: make(chan struct{}, 1), dead: make(chan struct{})}
	go s.read(k, r)
	return k, nil
}

// switched reads the answer to the handshake.
func switched(r *bufio.Reader, key string) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return fmt.Errorf("cannot read an answer: %w", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != socketAnswer(key) {
		return fmt.Errorf("the answer is %s", resp.Status)
	}
	return nil
}

// read waits for messages until the connection ends.
func (s *sockets) read(k *socket, r *bufio.Reader) {
	defer close(k.dead)
	defer s.died.Add(1)
	for {
		text, err := readMessage(r)
		if err != nil || string(text) != "ping" {
			return
		}
		k.echoed <- struct{}{}
	}
}

func (s *sockets) alive() int { return len(s.all) - int(s.died.Load()) }

// echo sends one message on each and returns how many do not send it back.
func (s *sockets) echo() (silent int) {
	mask := [4]byte{1, 2, 3, 4}
	frame := append([]byte{0x81, 0x80 | 4}, mask[:]...)
	for i, b := range []byte("ping") {
		frame = append(frame, b^mask[i%4])
	}
	for _, k := range s.all {
		_ = k.c.SetWriteDeadline(time.Now().Add(patience))
		_, _ = k.c.Write(frame)
	}
	late := time.After(patience)
	for _, k := range s.all {
		select {
		case <-k.echoed:
		case <-k.dead:
			silent++
		case <-late:
			silent++
			late = time.After(0)
		}
	}
	return silent
}

// close ends them and waits for those that read.
func (s *sockets) close() {
	for _, k := range s.all {
		if k != nil {
			_ = k.c.Close()
			<-k.dead
		}
	}
}

// readMessage reads a text message of at most 125 bytes in one frame (RFC 6455 section 5.2).
func readMessage(r *bufio.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := int(head[1] & 0x7f)
	if head[0] != 0x81 || length > 125 {
		return nil, fmt.Errorf("cannot take a frame that begins with %x", head)
	}
	var mask [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return nil, err
		}
	}
	text := make([]byte, length)
	_, err := io.ReadFull(r, text)
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return text, err
}
