package h2session

import (
	"bytes"
	"testing"
)

// TestPausedStreamsShutTheirOwnWindows: whatever waits in streams whose sinks are paused, the other streams of the connection
// go on, in both parts, and what waits is bounded by the windows of the streams.
func TestPausedStreamsShutTheirOwnWindows(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	for _, tc := range []struct {
		name  string
		pause func(d *duo, i int) *echo // the end of stream i that receives
	}{
		{"server", func(d *duo, i int) *echo { return d.server.opened[i] }},
		{"client", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDuo(t, Config{Buffers: &Buffers{}})
			for i := range 40 {
				e := d.request()
				d.run()
				if tc.pause != nil {
					e = tc.pause(d, i)
				} else {
					d.server.opened[i].answers = true
				}
				e.Pause()
			}
			for _, e := range d.client.all {
				e.SendData(body)
			}
			d.run()
			receiver := &d.server.s
			if tc.pause == nil {
				receiver = &d.client.s
			}
			if receiver.held < 40*60000 || receiver.held > 40*firstWindow {
				t.Errorf("%d bytes wait in 40 streams", receiver.held)
			}
			bystander := d.request()
			bystander.SendData(body)
			bystander.SendEnd(nil)
			d.run()
			if !bytes.Equal(bystander.body, body) || !bystander.ended {
				t.Fatalf("of the answer to another one %d bytes came, end %v", len(bystander.body), bystander.ended)
			}
		})
	}
}

// TestWindowsGrowTogether: all streams of a connection together may grow by so much, and what one has grown by is free
// again when it ends.
func TestWindowsGrowTogether(t *testing.T) {
	d := newDuo(t, Config{Buffers: &Buffers{}})
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var all []*echo
	for range 20 {
		e := d.request()
		d.run()
		e.SendData(body)
		d.run()
		all = append(all, e)
	}
	sum := int32(0)
	for _, st := range d.server.s.open {
		sum += st.win.size - firstWindow
	}
	if sum != d.server.s.grown || sum > maxGrown || sum < maxGrown*3/4 {
		t.Errorf("the windows have grown by %d bytes, %d are counted, %d allowed", sum, d.server.s.grown, maxGrown)
	}
	for _, e := range all {
		e.Reset(0)
	}
	d.run()
	if d.server.s.grown != 0 {
		t.Errorf("%d bytes are still taken", d.server.s.grown)
	}
	e := d.request()
	e.SendData(body)
	d.run()
	if d.server.s.grown == 0 {
		t.Error("a window does not grow any more")
	}
}

// TestUpdatesForWhoDoesNotRead: windows that are opened for a peer which does not read cost a bounded number of bytes, and
// are opened when it reads again.
func TestUpdatesForWhoDoesNotRead(t *testing.T) {
	d := newDuo(t, Config{})
	e := d.request()
	d.run()
	got := d.server.opened[0]
	got.answers = false
	server := &d.server
	server.out.room = 0
	server.out.b = append(server.out.b, "unread"...) // the peer reads nothing
	const chunk = 16000
	sent := 0
	for range 10000 {
		e.window, d.client.s.window = 1<<30, 1<<30 // it does not wait for windows either
		e.SendData(make([]byte, chunk))
		sent += chunk
		d.client.out.b = d.client.out.b[server.s.Receive(d.client.out.b, 0):]
		if server.s.over {
			break
		}
	}
	if n := len(server.out.b); n > 13*2*(maxGrants+2) {
		t.Errorf("%d bytes are queued for a peer that does not read, which sent %d", n, sent)
	}
	d = newDuo(t, Config{})
	e = d.request()
	d.run()
	server = &d.server
	server.opened[0].answers = false
	server.out.room = 0
	server.s.granted = maxGrants
	server.out.b = append(server.out.b, "\x00\x00\x00\x50\x00\x00\x00\x00\x00"...)
	e.SendData(make([]byte, 60000))
	server.s.Receive(d.client.out.b, 0)
	d.client.out.b = nil
	if e.window > 5535 || len(server.out.b) != 9 {
		t.Fatalf("the window is %d bytes, %d are queued", e.window, len(server.out.b))
	}
	d.carry(&d.server, &d.client) // it reads
	d.run()
	if e.window < firstWindow {
		t.Errorf("the window is %d bytes after it read", e.window)
	}
}

// TestProgressIsTheStreamsOwn: a stream whose own window is shut, or that has sent everything, is not moved by what others
// send; one whose bytes are queued for a slow connection is until they have left.
func TestProgressIsTheStreamsOwn(t *testing.T) {
	d := newDuo(t, Config{})
	c := &d.client
	shut, done, other, queued := d.request(), d.request(), d.request(), d.request()
	done.SendEnd(nil)
	shut.window = 0
	shut.SendData([]byte("waits for its window"))
	queued.SendData([]byte("last of all"))
	queued.SendEnd(nil)
	for _, st := range []*echo{done, queued} {
		if _, left := st.Progress(); left == 0 {
			t.Error("what is queued has left")
		}
	}
	// A slow connection: half of the queue goes.
	half := len(c.out.b) / 2
	before, _ := queued.Progress()
	c.out.gone, c.out.b = c.out.gone+uint64(half), c.out.b[half:]
	if taken, left := queued.Progress(); taken == before || left == 0 {
		t.Error("what stands in a queue that moves does not move")
	}
	c.out.gone, c.out.b = c.out.gone+uint64(len(c.out.b)), nil
	was, _ := shut.Progress()
	for range 10 {
		other.SendData([]byte("moves on"))
		c.out.gone++
		for _, st := range []*echo{done, queued} {
			if _, left := st.Progress(); left != 0 {
				t.Fatal("a stream has bytes that others sent")
			}
		}
		if taken, left := shut.Progress(); taken != was || left == 0 {
			t.Fatal("a stream is moved by what others send")
		}
	}
	// Its window is open, and the connection's is not: what others send brings its turn nearer.
	shut.window, c.s.window = 100, 0
	was, _ = shut.Progress()
	c.s.window = 5
	other.SendData([]byte("12345"))
	if taken, left := shut.Progress(); taken == was || left == 0 {
		t.Error("a stream that waits for the connection is not moved by it")
	}
}
