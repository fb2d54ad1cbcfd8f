package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// splicedRig is a passthrough route on real sockets.
type splicedRig struct {
	*rig
	loop        *reactor.Loop
	client, pod *net.TCPConn
	ended       chan proxy.Record
}

func (r *splicedRig) Log(rec *proxy.Record) { r.ended <- *rec }

// startSpliced returns a connection that is passed through, both directions of which are spliced.
func startSpliced(t *testing.T, idle time.Duration) *splicedRig {
	t.Helper()
	pods, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer pods.Close()
	r := &splicedRig{rig: &rig{t: t}, ended: make(chan proxy.Record, 1)}
	r.rig.log = r
	r.loop, err = reactor.New(reactor.Config{})
	must(t, err)
	at := r.listen(r.loop, netip.MustParseAddrPort("127.0.0.1:0"), func(p *routing.Policy) { p.TunnelTimeout = idle }, pods.Addr().(*net.TCPAddr).AddrPort())
	r.worker.Timeouts().Client = 3 * time.Second // for who takes nothing
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- r.loop.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-stopped) })

	c, err := net.Dial("tcp", at.String())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	r.client = c.(*net.TCPConn)
	_, err = c.Write([]byte("x"))
	must(t, err)
	p, err := pods.Accept()
	must(t, err)
	t.Cleanup(func() { p.Close() })
	must(t, p.SetDeadline(time.Now().Add(time.Minute)))
	r.pod = p.(*net.TCPConn)
	r.send(r.client, r.pod, 2*bulk-1, 2*bulk)
	r.send(r.pod, r.client, 2*bulk, 2*bulk)
	before := r.spliced()
	r.send(r.client, r.pod, bulk, bulk)
	r.send(r.pod, r.client, bulk, bulk)
	if got := r.spliced() - before; got != 2*bulk {
		t.Fatalf("%d bytes were spliced; want %d", got, 2*bulk)
	}
	return r
}

// send sends n bytes and waits until want have come.
func (r *splicedRig) send(from, to net.Conn, n, want int) {
	r.t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(make([]byte, n))
		sent <- err
	}()
	_, err := io.ReadFull(to, make([]byte, want))
	must(r.t, errors.Join(err, <-sent))
}

// spliced is how many bytes the kernel has moved.
func (r *splicedRig) spliced() (n uint64) {
	done := make(chan struct{})
	r.loop.Post(func() { n = r.loop.Stats().Spliced; close(done) })
	<-done
	return n
}

// expectEnd waits for the end of what comes.
func (r *splicedRig) expectEnd(c net.Conn) {
	r.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		r.t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

// TestSplicedBytesCountAtOnce: a connection may last for days, and what it moves is seen meanwhile.
func TestSplicedBytesCountAtOnce(t *testing.T) {
	r := startSpliced(t, time.Hour)
	check := func(in, out uint64) {
		t.Helper()
		r.spliced() // an iteration after the one in which the last byte left has begun
		var total proxy.Totals
		r.worker.Totals(&total)
		if port := total.Ports[1]; port.BytesIn != in || port.BytesOut != out {
			t.Errorf("worker counts %d and %d bytes; want %d and %d", port.BytesIn, port.BytesOut, in, out)
		}
		if s := r.route.Stats(); s.BytesIn.Load() != in || s.BytesOut.Load() != out {
			t.Errorf("route counts %d and %d bytes; want %d and %d", s.BytesIn.Load(), s.BytesOut.Load(), in, out)
		}
	}
	check(3*bulk, 3*bulk)
	r.send(r.client, r.pod, 100, 100)
	r.send(r.pod, r.client, 5000, 5000)
	check(3*bulk+100, 3*bulk+5000)
	must(t, r.client.Close())
	r.expectEnd(r.pod)
	must(t, r.pod.Close())
	if rec := <-r.ended; rec.BytesIn != 3*bulk+100 || rec.BytesOut != 3*bulk+5000 || rec.Reason != proxy.ReasonTunnelClosed {
		t.Errorf("logged %d and %d bytes, %v", rec.BytesIn, rec.BytesOut, rec.Reason)
	}
	check(3*bulk+100, 3*bulk+5000)
}

// TestSplicedTunnelEndsWhenSilent: that the kernel moves the bytes does not keep a silent tunnel.
func TestSplicedTunnelEndsWhenSilent(t *testing.T) {
	const idle = 2 * time.Second
	r := startSpliced(t, idle)
	r.send(r.client, r.pod, 1, 1)
	moved := time.Now()
	r.expectEnd(r.pod)
	r.expectEnd(r.client)
	if waited := time.Since(moved); waited < idle*(idleSteps-1)/idleSteps {
		t.Errorf("ended %v after a byte; want %v at least", waited, idle)
	}
	if rec := <-r.ended; rec.Reason != proxy.ReasonTunnelClosed {
		t.Errorf("ended with %v", rec.Reason)
	}
}

// TestSplicedHalfClose: each side may end its sending first and gets what the other still sends.
func TestSplicedHalfClose(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		r := startSpliced(t, time.Hour)
		first, second := r.client, r.pod
		if !clientFirst {
			first, second = r.pod, r.client
		}
		must(t, first.CloseWrite())
		r.expectEnd(second)
		r.send(second, first, 1<<20, 1<<20)
		must(t, second.CloseWrite())
		r.expectEnd(first)
		if rec := <-r.ended; rec.BytesIn+rec.BytesOut != 6*bulk+1<<20 || rec.Reason != proxy.ReasonTunnelClosed {
			t.Errorf("logged %d and %d bytes, %v", rec.BytesIn, rec.BytesOut, rec.Reason)
		}
	}
}

// TestWatchReadsCounts: a tunnel whose count grows is in use, whatever moves its bytes.
func TestWatchReadsCounts(t *testing.T) {
	n := memnet.New(1)
	loop := reactor.NewOn(n, reactor.Config{})
	count, ended := uint64(0), false
	NewWatch(loop.Dial(podA, &looker{}, 0), 8*time.Second, func() uint64 { return count }, func(bool) { ended = true })
	for range 20 {
		n.Advance(5 * time.Second)
		count++
	}
	if ended {
		t.Fatal("ended while bytes moved")
	}
	n.Advance(10 * time.Second)
	if !ended {
		t.Error("kept without a byte")
	}
}

// TestSplicedClientLeavesWithBytesUnderWay: a pod that takes nothing does not keep the tunnel of a client that left.
func TestSplicedClientLeavesWithBytesUnderWay(t *testing.T) {
	for name, reset := range map[string]bool{"FIN": false, "RST": true} {
		r := startSpliced(t, time.Hour)
		must(t, r.client.SetWriteDeadline(time.Now().Add(time.Second/2)))
		if _, err := r.client.Write(make([]byte, 64<<20)); err == nil {
			t.Fatal("the pod's connection has no end")
		}
		if reset {
			must(t, r.client.SetLinger(0))
		}
		must(t, r.client.Close())
		if !reset { // the FIN has room once the router's receive queue has
			go func() { _, _ = io.CopyN(io.Discard, r.pod, 16<<20) }()
		}
		if rec := <-r.ended; rec.Reason != proxy.ReasonTunnelClosed {
			t.Errorf("%s: ended with %v", name, rec.Reason)
		}
	}
}

// TestSplicedHalfCloseEnds: a side that has nothing to say after the other one ended does not keep the tunnel.
func TestSplicedHalfCloseEnds(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		r := startSpliced(t, time.Hour)
		first := r.client
		if !clientFirst {
			first = r.pod
		}
		must(t, first.CloseWrite())
		if rec := <-r.ended; rec.Reason != proxy.ReasonTunnelClosed || r.bounds.Of(bound.TunnelFin) != 1 {
			t.Errorf("ended with %v, counted %d times", rec.Reason, r.bounds.Of(bound.TunnelFin))
		}
	}
}
