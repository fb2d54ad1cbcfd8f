package soak

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // RFC 6455 wants it
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// largeSize is the length of a download, in bytes.
const largeSize = 4 << 20

// pod is a backend in this process, with an address that no other pod ever had.
type pod struct {
	addr     netip.AddrPort
	server   *http.Server
	requests atomic.Int64
}

// newPod starts pod number n. It speaks HTTP/1.1 and, to who begins so, HTTP/2 without TLS.
func newPod(n int) (*pod, error) {
	ip := netip.AddrFrom4([4]byte{127, byte(1 + n>>16), byte(n >> 8), byte(n)})
	ln, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return nil, fmt.Errorf("cannot start a pod: %w", err)
	}
	p := &pod{addr: ln.Addr().(*net.TCPAddr).AddrPort()}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", p.page)
	mux.HandleFunc("/echo", p.echo)
	mux.HandleFunc("/large", p.large)
	mux.HandleFunc("/stream", p.stream)
	mux.HandleFunc("/socket", p.socket)
	p.server = &http.Server{Handler: mux, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = p.server.Serve(ln) }() // ends with the pod
	return p, nil
}

// retire stops the pod as Kubernetes does: it goes on for a while, and then finishes what it has.
func (p *pod) retire(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(after):
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_ = p.server.Shutdown(ctx)
	_ = p.server.Close()
}

// recycleAfter is how many pages a pod serves between two connections of HTTP/2 that it asks to be replaced.
const recycleAfter = 500

func (p *pod) page(w http.ResponseWriter, q *http.Request) {
	if n := p.requests.Add(1); q.ProtoMajor == 2 && n%recycleAfter == 0 {
		w.Header().Set("Connection", "close") // GOAWAY
	}
	_, _ = io.WriteString(w, p.addr.String())
}

// echo answers with the length and the sum of the body.
func (p *pod) echo(w http.ResponseWriter, q *http.Request) {
	p.requests.Add(1)
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, q.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%d %08x", n, sum.Sum32())
}

func (p *pod) large(w http.ResponseWriter, _ *http.Request) {
	p.requests.Add(1)
	w.Header().Set("Content-Length", fmt.Sprint(largeSize))
	chunk := make([]byte, 64<<10)
	for left := largeSize; left > 0; left -= len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// stream sends back each piece at once, and at the end how it went, as gRPC does.
func (p *pod) stream(w http.ResponseWriter, q *http.Request) {
	p.requests.Add(1)
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	var piece [4 << 10]byte
	for {
		n, err := q.Body.Read(piece[:])
		if _, werr := w.Write(piece[:n]); werr != nil || flush.Flush() != nil {
			return
		}
		if err == io.EOF {
			w.Header().Set("Grpc-Status", "0")
			return
		}
		if err != nil {
			return
		}
	}
}

// socketAnswer is what a server makes of the key of a client (RFC 6455 section 4.2.2).
func socketAnswer(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // RFC 6455 wants it
	return base64.StdEncoding.EncodeToString(sum[:])
}

// socket is a WebSocket that sends back short messages.
func (p *pod) socket(w http.ResponseWriter, q *http.Request) {
	p.requests.Add(1)
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Sec-WebSocket-Accept", socketAnswer(q.Header.Get("Sec-WebSocket-Key")))
	w.WriteHeader(http.StatusSwitchingProtocols)
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_ = buffered.Flush()
	go echoMessages(c, buffered.Reader)
}

func echoMessages(c net.Conn, r *bufio.Reader) {
	defer c.Close()
	for {
		text, err := readMessage(r)
		if err != nil {
			return
		}
		if _, err := c.Write(append([]byte{0x81, byte(len(text))}, text...)); err != nil {
			return
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
