package reactor

import (
	"io"
	"testing"
)

// TestBytesTakenOfSockets: bytes that the kernel has queued for a peer that does not read are not taken.
func TestBytesTakenOfSockets(t *testing.T) {
	const size = 8 << 20
	l := steppedLoop(t, Config{})
	peer, c := steppedPair(t, l, &hooks{})
	c.Write(make([]byte, size))
	if taken, written := c.BytesTaken(), c.BytesWritten(); taken >= written {
		t.Errorf("%d of %d bytes are taken", taken, written)
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(peer, make([]byte, size))
		l.Post(func() { read <- err })
	}()
	step(t, l, "the last byte", func() bool { return c.BytesTaken() == size })
	step(t, l, "the end of reading", func() bool { return len(read) > 0 })
	if err := <-read; err != nil {
		t.Error(err)
	}
}
