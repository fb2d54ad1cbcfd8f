package h2

import (
	"bytes"
	"slices"
	"testing"

	"turnout/internal/reactor/memnet"
)

// TestStreamsGetTheirTurn: 1,000 streams on 10 connections, each followed by the next, are served in order. How long a
// request waits is counted in answers to others: the 99th percentile is at most twice the median.
func TestStreamsGetTheirTurn(t *testing.T) {
	const connections, streams, requests = 10, 100, 6000
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	answered := 0
	var waits []int
	for range connections {
		c := r.connect()
		c.grant = false
		asked := map[uint32]int{}
		next := uint32(1)
		ask := func() {
			c.get(next, "/")
			asked[next] = answered
			next += 2
		}
		flush := func() {
			c.peer.Write(bytes.Clone(c.out.Bytes()))
			c.out.Reset()
		}
		c.peer.OnData = func(*memnet.Peer) {
			c.in = append(c.in, c.peer.TakeReceived()...)
			c.parse()
			var ended []uint32
			for id, a := range c.streams {
				if a.ended {
					delete(c.streams, id)
					ended = append(ended, id)
				}
			}
			answered += len(ended) // what comes together has waited equally long
			for _, id := range ended {
				waits = append(waits, answered-asked[id])
				if len(waits) < requests {
					ask()
				}
			}
			flush()
		}
		for range streams {
			ask()
		}
		flush()
	}
	r.net.Run()
	waits = waits[connections*streams:] // those that began at once tell nothing
	slices.Sort(waits)
	p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]
	t.Logf("%d requests waited for %d answers, median; %d, 99th percentile", len(waits), p50, p99)
	if len(waits) < requests-connections*streams || p99 > 2*p50 {
		t.Errorf("%d requests waited for %d answers, median; %d, 99th percentile", len(waits), p50, p99)
	}
	r.wantQuiet()
}
