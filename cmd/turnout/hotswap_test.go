package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnout/controller"
	"turnout/internal/server"
	"turnout/routing"
)

const (
	hotSockets   = 1000
	hotDownloads = 100
	hotChanges   = 500
	hotSteps     = 20 // pieces of one download
	hotPiece     = 8 << 10
)

// swapRig is a whole router fed by a folder, and the pods behind it.
type swapRig struct {
	t     *testing.T
	dir   string
	store *routing.Store
	plane *server.Server
	pods  []*httptest.Server
	step  [hotSteps]chan struct{} // closed one by one: every download sends its next piece
}

func newSwapRig(t *testing.T) *swapRig {
	r := &swapRig{t: t, dir: t.TempDir()}
	for i := range r.step {
		r.step[i] = make(chan struct{})
	}
	for range 2 {
		pod := httptest.NewServer(http.HandlerFunc(r.serve))
		t.Cleanup(pod.Close)
		r.pods = append(r.pods, pod)
	}
	r.write(0)

	r.plane, r.store = startInProcess(t, r.dir, controller.Options{})
	return r
}

// serve is a pod: an echo after an upgrade, a download in steps, or a short page.
func (r *swapRig) serve(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/ws":
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			r.t.Error(err)
			return
		}
		defer c.Close()
		sum := sha1.Sum([]byte(q.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(sum[:]))
		_, _ = io.Copy(c, rw)
	case "/download":
		w.Header().Set("Content-Length", fmt.Sprint(hotSteps*hotPiece))
		piece := []byte(strings.Repeat("d", hotPiece))
		for _, next := range r.step {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	default:
		_, _ = io.WriteString(w, "page")
	}
}

// write puts version n of the manifests in place: the second pod comes and goes, the
// route's timeout and weights change, other routes come and go.
func (r *swapRig) write(n int) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: app\n  annotations:\n    haproxy.router.openshift.io/timeout: %ds\nspec:\n  host: app.test\n  to: {kind: Service, name: app, weight: %d}\n---\n", 30+n%7, 1+n%200)
	fmt.Fprintf(&b, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: extra-%d\nspec:\n  host: extra-%d.test\n  to: {kind: Service, name: app}\n---\n", n%5, n)
	b.WriteString("apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec:\n  ports: [{name: http, port: 80}]\n---\n")
	for i, pod := range r.pods {
		if i == 1 && n%2 == 1 {
			continue
		}
		addr := pod.Listener.Addr().(*net.TCPAddr)
		fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: app-%d\n  labels: {kubernetes.io/service-name: app}\naddressType: IPv4\nports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n---\n",
			i, addr.Port, addr.IP)
	}
	write(r.t, r.dir, "app.yaml", []byte(b.String()))
}

func (r *swapRig) dial() net.Conn {
	c, err := net.Dial("tcp", r.plane.HTTP().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// TestHotSwap holds WebSockets and downloads open and keeps requests coming while
// routes and endpoints change hundreds of times. Nothing breaks and nothing fails.
func TestHotSwap(t *testing.T) {
	t.Parallel()
	r := newSwapRig(t)
	sockets := make([]*bufio.ReadWriter, hotSockets)
	for i := range sockets {
		sockets[i] = r.upgrade()
	}
	var downloads sync.WaitGroup
	var started sync.WaitGroup
	started.Add(hotDownloads)
	for range hotDownloads {
		downloads.Go(func() { r.download(&started) })
	}
	started.Wait()

	stop := make(chan struct{})
	var served atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() { r.load(stop, &served) })
	}
	for n := 1; n <= hotChanges; n++ {
		before := r.store.Load().Generation()
		r.write(n)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := r.store.Wait(ctx, before+1); err != nil {
			t.Fatalf("change %d was not published: %v", n, err)
		}
		cancel()
		if n%(hotChanges/hotSteps) == 0 {
			close(r.step[n/(hotChanges/hotSteps)-1])
			r.echo(sockets)
		}
	}
	close(stop)
	load.Wait()
	downloads.Wait()
	r.echo(sockets)
	if served.Load() < 100 {
		t.Errorf("only %d requests were served meanwhile", served.Load())
	}
	t.Logf("%d table generations, %d requests", r.store.Load().Generation(), served.Load())
}

func (r *swapRig) upgrade() *bufio.ReadWriter {
	c := r.dial()
	rw := bufio.NewReadWriter(bufio.NewReaderSize(c, 512), bufio.NewWriterSize(c, 256))
	fmt.Fprint(rw, "GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
	_ = rw.Flush()
	resp, err := http.ReadResponse(rw.Reader, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		r.t.Fatalf("upgrade: %v, %v", resp, err)
	}
	return rw
}

// echo sends a masked text frame through every socket and wants its bytes back.
func (r *swapRig) echo(sockets []*bufio.ReadWriter) {
	r.t.Helper()
	frame := []byte{0x81, 0x84, 1, 2, 3, 4, 'p' ^ 1, 'i' ^ 2, 'n' ^ 3, 'g' ^ 4}
	for _, s := range sockets {
		_, _ = s.Write(frame)
		if err := s.Flush(); err != nil {
			r.t.Fatalf("a WebSocket broke: %v", err)
		}
	}
	got := make([]byte, len(frame))
	for _, s := range sockets {
		if _, err := io.ReadFull(s, got); err != nil || string(got) != string(frame) {
			r.t.Fatalf("a WebSocket broke: %q, %v", got, err)
		}
	}
}

func (r *swapRig) download(started *sync.WaitGroup) {
	c := r.dial()
	fmt.Fprint(c, "GET /download HTTP/1.1\r\nHost: app.test\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	started.Done()
	if err != nil || resp.StatusCode != 200 {
		r.t.Errorf("download: %v, %v", resp, err)
		return
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != hotSteps*hotPiece {
		r.t.Errorf("a download broke after %d bytes: %v", n, err)
	}
}

// load sends one request after the other over one connection.
func (r *swapRig) load(stop chan struct{}, served *atomic.Int64) {
	c := r.dial()
	in := bufio.NewReader(c)
	for {
		select {
		case <-stop:
			return
		default:
		}
		fmt.Fprint(c, "GET /page HTTP/1.1\r\nHost: app.test\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			r.t.Errorf("a request failed: %v, %v", resp, err)
			return
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "page" {
			r.t.Errorf("a request failed: %q, %v", body, err)
			return
		}
		served.Add(1)
	}
}
