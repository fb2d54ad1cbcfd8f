package adversary

import (
	"bytes"

	"turnout/internal/reactor/memnet"
)

// startEvilTunnel opens a connection that is passed through, and does with it what it likes.
func (w *world) startEvilTunnel() {
	peer := w.net.Connect(oneOf(w, tlsPort, evilPort))
	for range w.n(6) {
		w.net.After(w.pause(), func() { w.tunnelAct(peer) })
	}
}

func (w *world) tunnelAct(peer *memnet.Peer) {
	switch w.n(8) {
	case 0, 1, 2:
		peer.Write(bytes.Repeat([]byte("t"), w.n(300000)))
	case 3:
		peer.CloseWrite()
	case 4:
		peer.Close()
	case 5:
		peer.Reset()
	case 6:
		peer.StopReading()
	case 7:
		peer.StartReading()
	}
}

// evilPass is a pod of tunnels that does what it likes.
func (w *world) evilPass(peer *memnet.Peer) {
	if w.chance(50) {
		echo(peer)
	}
	for range w.n(6) {
		w.net.After(w.pause(), func() { w.tunnelAct(peer) })
	}
}
