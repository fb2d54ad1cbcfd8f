package h2

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
)

// client is a scripted HTTP/2 client: what it writes is golang.org/x/net's, which checks nothing here.
type client struct {
	t    *testing.T
	r    *rig
	peer *memnet.Peer
	out  bytes.Buffer
	fr   *http2.Framer
	enc  *hpack.Encoder
	blk  bytes.Buffer
	dec  *hpack.Decoder

	in      []byte
	frames  []string // what came, one line each
	streams map[uint32]*answer
	goAway  *http2.GoAwayFrame
	windows map[uint32]uint32 // WINDOW_UPDATEs by stream
	// grant answers DATA with WINDOW_UPDATEs.
	grant bool
	// connectProtocol is SETTINGS_ENABLE_CONNECT_PROTOCOL.
	connectProtocol uint32
}

// answer is what came on one stream.
type answer struct {
	status   string
	fields   string // "name: value\n"...
	trailers string
	body     []byte
	interim  []string
	ended    bool
	reset    http2.ErrCode
	wasReset bool
}

// connect begins a connection with preface and empty SETTINGS.
func (r *rig) connect() *client { return r.begin(r.bare()) }

// connectFrom is connect from an address of its own.
func (r *rig) connectFrom(from netip.Addr) *client {
	return r.begin(r.on(r.net.ConnectFrom(from, frontAddr)))
}

func (r *rig) begin(c *client) *client {
	c.peer.Write([]byte(http2.ClientPreface))
	_ = c.fr.WriteSettings()
	c.grant = true
	c.run()
	return c
}

// bare begins a connection on which nothing is sent.
func (r *rig) bare() *client { return r.on(r.net.Connect(frontAddr)) }

func (r *rig) on(peer *memnet.Peer) *client {
	c := &client{t: r.t, r: r, peer: peer, streams: map[uint32]*answer{}, windows: map[uint32]uint32{}}
	c.fr = http2.NewFramer(&c.out, nil)
	c.fr.AllowIllegalWrites = true
	c.enc = hpack.NewEncoder(&c.blk)
	c.dec = hpack.NewDecoder(4096, nil)
	return c
}

// run sends what was written and lets everything settle; frames that came are in c.frames and c.streams.
func (c *client) run() {
	for {
		if c.out.Len() > 0 {
			c.peer.Write(bytes.Clone(c.out.Bytes()))
			c.out.Reset()
		}
		c.r.net.Run()
		c.in = append(c.in, c.peer.TakeReceived()...)
		if !c.parse() {
			return
		}
	}
}

// parse takes the complete frames of c.in; false: there was none.
func (c *client) parse() bool {
	found := false
	for len(c.in) >= 9 {
		n := 9 + int(c.in[0])<<16 + int(c.in[1])<<8 + int(c.in[2])
		if len(c.in) < n {
			break
		}
		fr := http2.NewFramer(nil, bytes.NewReader(c.in[:n]))
		fr.AllowIllegalReads = true
		f, err := fr.ReadFrame()
		if err != nil {
			c.t.Fatalf("cannot read frame %x: %v", c.in[:min(n, 32)], err)
		}
		c.take(f)
		c.in = c.in[n:]
		found = true
	}
	return found
}

func (c *client) stream(id uint32) *answer {
	if c.streams[id] == nil {
		c.streams[id] = &answer{}
	}
	return c.streams[id]
}

func (c *client) take(f http2.Frame) {
	c.frames = append(c.frames, strings.Trim(f.Header().String(), "[]"))
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.HeadersFrame:
		c.takeHead(c.stream(id), f.HeaderBlockFragment(), f.StreamEnded(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		c.takeHead(c.stream(id), f.HeaderBlockFragment(), false, f.HeadersEnded())
	case *http2.DataFrame:
		a := c.stream(id)
		a.body = append(a.body, f.Data()...)
		a.ended = a.ended || f.StreamEnded()
		if c.grant && len(f.Data()) > 0 {
			_ = c.fr.WriteWindowUpdate(0, uint32(len(f.Data())))
			if !f.StreamEnded() {
				_ = c.fr.WriteWindowUpdate(id, uint32(len(f.Data())))
			}
		}
	case *http2.RSTStreamFrame:
		a := c.stream(id)
		a.reset, a.wasReset = f.ErrCode, true
	case *http2.GoAwayFrame:
		c.goAway = f
	case *http2.WindowUpdateFrame:
		c.windows[id] += f.Increment
	case *http2.SettingsFrame:
		if !f.IsAck() {
			c.connectProtocol, _ = f.Value(http2.SettingEnableConnectProtocol)
			_ = c.fr.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = c.fr.WritePing(true, f.Data)
		}
	}
}

func (c *client) takeHead(a *answer, fragment []byte, ended, complete bool) {
	status, fields := "", ""
	c.dec.SetEmitFunc(func(f hpack.HeaderField) {
		if f.Name == ":status" {
			status = f.Value
		} else {
			fields += f.Name + ": " + f.Value + "\n"
		}
	})
	if _, err := c.dec.Write(fragment); err != nil {
		c.t.Fatalf("cannot decode header list: %v", err)
	}
	if complete {
		if err := c.dec.Close(); err != nil {
			c.t.Fatalf("cannot decode header list: %v", err)
		}
	}
	switch {
	case status == "" && a.status != "" && len(a.body) > 0 || ended && a.status != "":
		a.trailers += fields
	case strings.HasPrefix(status, "1"):
		a.interim = append(a.interim, status+" "+fields)
	default:
		a.status += status
		a.fields += fields
	}
	a.ended = a.ended || ended
}

// block encodes pairs of name and value.
func (c *client) block(pairs ...string) []byte {
	c.blk.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(c.blk.Bytes())
}

// headers writes a HEADERS frame.
func (c *client) headers(id uint32, end bool, pairs ...string) {
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(pairs...), EndStream: end, EndHeaders: true})
}

// request writes the head of a request for app.test.
func (c *client) request(id uint32, end bool, method, path string, pairs ...string) {
	c.headers(id, end, append([]string{":method", method, ":scheme", "http", ":authority", "app.test", ":path", path}, pairs...)...)
}

func (c *client) get(id uint32, path string, pairs ...string) {
	c.request(id, true, "GET", path, pairs...)
}

func (c *client) data(id uint32, end bool, p string) { _ = c.fr.WriteData(id, end, []byte(p)) }

// want checks an answer: its status, body, and that it is complete.
func (c *client) want(id uint32, status int, body string) *answer {
	c.t.Helper()
	a := c.stream(id)
	if a.status != fmt.Sprint(status) || string(a.body) != body || !a.ended {
		c.t.Fatalf("stream %d: status %q, body %.60q, ended %v, reset %v (%v); want %d %.60q\n%s",
			id, a.status, a.body, a.ended, a.wasReset, a.reset, status, body, strings.Join(c.frames, "\n"))
	}
	return a
}

// wantReset checks that a stream was reset with code, and the connection lives.
func (c *client) wantReset(id uint32, code http2.ErrCode) {
	c.t.Helper()
	if a := c.stream(id); !a.wasReset || a.reset != code || c.goAway != nil {
		c.t.Fatalf("stream %d: reset %v with %v, status %q; want %v; GOAWAY %v\n%s", id, a.wasReset, a.reset, a.status, code, c.goAway, strings.Join(c.frames, "\n"))
	}
}

// wantGoAway checks that the connection ended with code.
func (c *client) wantGoAway(code http2.ErrCode) {
	c.t.Helper()
	if c.goAway == nil || c.goAway.ErrCode != code || !c.peer.EOF() {
		c.t.Fatalf("GOAWAY %v, end %v; want %v\n%s", c.goAway, c.peer.EOF(), code, strings.Join(c.frames, "\n"))
	}
}
