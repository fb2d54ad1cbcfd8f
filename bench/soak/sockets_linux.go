package soak

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"golang.org/x/net/websocket"

	"turnout/bench/site"
)

// socket is a WebSocket of a client. A goroutine reads.
type socket struct {
	*websocket.Conn

	echoed chan struct{} // a message came
	dead   chan struct{} // closed when reading is over
}

// sockets are WebSockets that do nothing.
type sockets struct {
	all  []*socket
	died atomic.Int64
}

// openSockets opens n of them, every second over TLS.
func openSockets(plain, secure string, n int) *sockets {
	s := &sockets{all: make([]*socket, n)}
	if err := site.Try(func() {
		site.Together(n, 16, func(i int) { s.all[i] = s.open(plain, secure, i%2 == 1) })
	}); err != nil {
		s.close()
		site.Checkf(err, "cannot open WebSockets")
	}
	return s
}

func (s *sockets) open(plain, secure string, overTLS bool) *socket {
	addr, cfg := plain, (*tls.Config)(nil)
	if overTLS {
		addr, cfg = secure, clientTLS(hostSocket)
	}
	c := dial(addr, cfg)
	_ = c.SetDeadline(time.Now().Add(patience))
	ws, err := websocket.NewClient(site.Must(websocket.NewConfig("ws://"+hostSocket+"/socket", "http://"+hostSocket)), c)
	if err != nil {
		_ = c.Close()
		site.Checkf(err, "cannot open a WebSocket")
	}
	_ = c.SetDeadline(time.Time{})
	k := &socket{Conn: ws, echoed: make(chan struct{}, 1), dead: make(chan struct{})}
	go s.read(k)
	return k
}

// read waits for messages until the connection ends.
func (s *sockets) read(k *socket) {
	defer close(k.dead)
	defer s.died.Add(1)
	for {
		var text string
		if err := websocket.Message.Receive(k.Conn, &text); err != nil || text != "ping" {
			return
		}
		k.echoed <- struct{}{}
	}
}

func (s *sockets) alive() int { return len(s.all) - int(s.died.Load()) }

// echo sends one message on each and returns how many do not send it back.
func (s *sockets) echo() (silent int) {
	for _, k := range s.all {
		_ = k.SetWriteDeadline(time.Now().Add(patience))
		_ = websocket.Message.Send(k.Conn, "ping")
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
			_ = k.Close()
			<-k.dead
		}
	}
}
