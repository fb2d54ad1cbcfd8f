package h2

import (
	"bytes"
	"net/netip"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// pod2 is a scripted HTTP/2 endpoint: serve is called for each request that is complete.
type pod2 struct {
	r      *rig
	addr   netip.AddrPort
	conns  []*podConn
	early  func(c *podConn, q *podRequest) // called at the head, if not nil
	serve  func(c *podConn, q *podRequest)
	accept []http2.Setting
	mute   bool // reads and writes nothing on new connections
}

// podRequest is one request as the endpoint got it.
type podRequest struct {
	id       uint32
	line     string // ":method :path :scheme :authority"
	fields   string
	body     []byte
	trailers string
	reset    string // code, when the router reset it
	of       any    // data of the test
}

// podConn is one connection of it.
type podConn struct {
	p        *pod2
	peer     *memnet.Peer
	in       []byte
	out      bytes.Buffer
	fr       *http2.Framer
	dec      *hpack.Decoder
	enc      *hpack.Encoder
	blk      bytes.Buffer
	greeted  bool
	deaf     bool // grants no windows
	frozen   bool // answers no PING
	pings    int
	goAway   *http2.GoAwayFrame
	requests map[uint32]*podRequest
	order    []*podRequest
	granted  map[uint32]uint32
}

// pod2 starts an endpoint at 198.51.100.n:80.
func (r *rig) pod2(n int, serve func(c *podConn, q *podRequest)) *pod2 {
	p := &pod2{r: r, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80), serve: serve}
	r.net.Accept(p.addr, p.greet)
	return p
}

func (p *pod2) greet(peer *memnet.Peer) {
	c := &podConn{p: p, peer: peer, requests: map[uint32]*podRequest{}, granted: map[uint32]uint32{}}
	c.fr = http2.NewFramer(&c.out, nil)
	c.fr.AllowIllegalWrites = true
	c.enc = hpack.NewEncoder(&c.blk)
	c.dec = hpack.NewDecoder(4096, nil)
	p.conns = append(p.conns, c)
	if p.mute {
		peer.StopReading()
		return
	}
	_ = c.fr.WriteSettings(p.accept...)
	c.flush()
	peer.OnData = func(*memnet.Peer) { c.data(peer.TakeReceived()) }
}

// h2c makes the servers of a route speak HTTP/2 by prior knowledge.
func h2c(s *routing.RouteSpec) {
	for i := range s.Targets {
		s.Targets[i].Protocol = protocol.HTTP2
	}
}

func (c *podConn) flush() {
	c.peer.Write(bytes.Clone(c.out.Bytes()))
	c.out.Reset()
}

func (c *podConn) data(b []byte) {
	c.in = append(c.in, b...)
	if !c.greeted {
		if len(c.in) < len(http2.ClientPreface) {
			return
		}
		if !strings.HasPrefix(string(c.in), http2.ClientPreface) {
			c.p.r.t.Errorf("the pod got %q for a preface", c.in)
		}
		c.greeted, c.in = true, c.in[len(http2.ClientPreface):]
	}
	for len(c.in) >= 9 {
		n := 9 + int(c.in[0])<<16 + int(c.in[1])<<8 + int(c.in[2])
		if len(c.in) < n {
			break
		}
		f, err := http2.NewFramer(nil, bytes.NewReader(c.in[:n])).ReadFrame()
		if err != nil {
			c.p.r.t.Fatalf("the pod cannot read frame %x: %v", c.in[:min(n, 32)], err)
		}
		c.take(f)
		c.in = c.in[n:]
	}
	c.flush()
}

func (c *podConn) take(f http2.Frame) {
	id := f.Header().StreamID
	q := c.requests[id]
	switch f := f.(type) {
	case *http2.HeadersFrame:
		c.head(q, f)
	case *http2.DataFrame:
		if q == nil {
			c.p.r.t.Fatalf("the pod got DATA on stream %d", id)
		}
		q.body = append(q.body, f.Data()...)
		if n := uint32(len(f.Data())); n > 0 && !c.deaf {
			_ = c.fr.WriteWindowUpdate(0, n)
			if !f.StreamEnded() {
				_ = c.fr.WriteWindowUpdate(id, n)
			}
		}
		if f.StreamEnded() {
			c.p.serve(c, q)
		}
	case *http2.RSTStreamFrame:
		if q == nil {
			c.p.r.t.Fatalf("the pod got RST_STREAM on stream %d", id)
		}
		q.reset = f.ErrCode.String()
	case *http2.SettingsFrame:
		if !f.IsAck() {
			_ = c.fr.WriteSettingsAck()
		}
	case *http2.GoAwayFrame:
		c.goAway = f
	case *http2.PingFrame:
		if c.pings++; !f.IsAck() && !c.frozen {
			_ = c.fr.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		c.granted[id] += f.Increment
	}
}

func (c *podConn) head(q *podRequest, f *http2.HeadersFrame) {
	if !f.HeadersEnded() {
		c.p.r.t.Fatal("the pod does not know CONTINUATION")
	}
	line := map[string]string{}
	fields := ""
	c.dec.SetEmitFunc(func(f hpack.HeaderField) {
		if f.IsPseudo() {
			line[f.Name] = f.Value
		} else {
			fields += f.Name + ": " + f.Value + "\n"
		}
	})
	if _, err := c.dec.Write(f.HeaderBlockFragment()); err != nil || c.dec.Close() != nil {
		c.p.r.t.Fatalf("the pod cannot decode a header list: %v", err)
	}
	if q != nil {
		q.trailers = fields
		c.p.serve(c, q)
		return
	}
	q = &podRequest{id: f.StreamID, fields: fields, line: line[":method"] + " " + line[":path"] + " " + line[":scheme"] + " " + line[":authority"]}
	c.requests[q.id] = q
	c.order = append(c.order, q)
	if c.p.early != nil {
		c.p.early(c, q)
	}
	if f.StreamEnded() {
		c.p.serve(c, q)
	}
}

// headers writes a header list.
func (c *podConn) headers(id uint32, end bool, pairs ...string) {
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(pairs...), EndStream: end, EndHeaders: true})
}

// block encodes pairs of name and value. It is valid until the next call.
func (c *podConn) block(pairs ...string) []byte {
	c.blk.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return c.blk.Bytes()
}

// say answers with a status and a body in frames of 16 KiB.
func (c *podConn) say(id uint32, status, body string, fields ...string) {
	c.headers(id, body == "", append([]string{":status", status}, fields...)...)
	for len(body) > 0 {
		k := min(len(body), 16384)
		_ = c.fr.WriteData(id, k == len(body), []byte(body[:k]))
		body = body[k:]
	}
}
