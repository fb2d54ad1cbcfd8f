package demo

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2 asks for SHA-1
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// WebSocket opcodes (RFC 6455 section 5.2).
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// maxMessage bounds one frame the echo accepts.
const maxMessage = 1 << 20

// upgrade answers an opening handshake (RFC 6455 section 4.2.2), greets, and
// echoes until the client closes. On the path /hello it closes after greeting.
func (p *pod) upgrade(ctx *fasthttp.RequestCtx) {
	key := field(ctx, "sec-websocket-key")
	if key == "" {
		ctx.Error("no Sec-WebSocket-Key", fasthttp.StatusBadRequest)
		return
	}
	once := string(ctx.Path()) == "/hello"
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
		head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
		if _, err := io.WriteString(c, head); err != nil {
			return
		}
		if writeFrame(c, opText, []byte("hello from pod "+p.name+"\n")) != nil {
			return
		}
		if once {
			_ = writeFrame(c, opClose, []byte{0x03, 0xe8}) // 1000, normal closure
			return
		}
		_ = echo(c)
	})
}

// echo returns messages to their sender until a close frame or an error.
func echo(c net.Conn) error {
	r := bufio.NewReader(c)
	for {
		first, op, payload, err := readFrame(r)
		if err != nil {
			return err
		}
		switch op {
		case opClose:
			return writeFrame(c, opClose, payload)
		case opPing:
			err = writeFrame(c, opPong, payload)
		case opPong:
		default: // text, binary and continuation, with FIN as it came
			err = writeRaw(c, first, payload)
		}
		if err != nil {
			return err
		}
	}
}

// readFrame reads one masked frame (RFC 6455 section 5.2). first is its first byte.
func readFrame(r *bufio.Reader) (first, op byte, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, 0, nil, err
	}
	if head[1]&0x80 == 0 {
		return 0, 0, nil, errors.New("frame of a client is not masked (RFC 6455 section 5.1)")
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		var ext [8]byte
		size := 2
		if n == 127 {
			size = 8
		}
		if _, err = io.ReadFull(r, ext[8-size:]); err != nil {
			return 0, 0, nil, err
		}
		n = binary.BigEndian.Uint64(ext[:])
	}
	if n > maxMessage {
		return 0, 0, nil, errors.New("frame is too long")
	}
	var mask [4]byte
	if _, err = io.ReadFull(r, mask[:]); err != nil {
		return 0, 0, nil, err
	}
	payload = make([]byte, n)
	if _, err = io.ReadFull(r, payload); err != nil {
		return 0, 0, nil, err
	}
	for i := range payload {
		payload[i] ^= mask[i&3]
	}
	return head[0], head[0] & 0x0f, payload, nil
}

func writeFrame(w io.Writer, op byte, payload []byte) error { return writeRaw(w, 0x80|op, payload) }

// writeRaw sends one unmasked frame in one write.
func writeRaw(w io.Writer, first byte, payload []byte) error {
	b := make([]byte, 0, len(payload)+10)
	b = append(b, first)
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	_, err := w.Write(append(b, payload...))
	return err
}
