package h1_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"turnout/internal/testkit"
)

// TestRealBodies sends bodies of many sizes both ways at once through real sockets,
// with a length and in chunks, from many clients, and compares every byte.
func TestRealBodies(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/length" {
			body, err := io.ReadAll(q.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, q.Body)
	}))
	defer backend.Close()
	r := testkit.StartRouter(t, 2, nil)
	r.Publish(t, testkit.Spec("app.test", backend.Listener.Addr().String()))

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	sizes := []int{0, 1, 100, 4095, 4096, 65535, 65536, 65537, 1 << 20, 5 << 20}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for _, n := range sizes {
				for _, path := range []string{"/length", "/duplex"} {
					body := make([]byte, n)
					for i := range body {
						body[i] = byte(rng.Uint32())
					}
					var from io.Reader = bytes.NewReader(body)
					if path == "/duplex" {
						from = io.MultiReader(from) // no known length: chunks
					}
					req, err := http.NewRequest("POST", "http://"+r.Addr.String()+path, from)
					if err != nil {
						t.Error(err)
						return
					}
					req.Host = "app.test"
					resp, err := client.Do(req)
					if err != nil {
						t.Errorf("%s %d: %v", path, n, err)
						return
					}
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err != nil || resp.StatusCode != 200 || sha256.Sum256(got) != sha256.Sum256(body) {
						t.Errorf("%s %d: status %d, %d bytes back, %v", path, n, resp.StatusCode, len(got), err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if r.Stats(t).Spliced == 0 && runtime.GOOS == "linux" {
		t.Error("nothing was spliced")
	}
}

// TestRealUpgrade echoes through an upgraded connection, small and bulk.
func TestRealUpgrade(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	defer backend.Close()
	r := testkit.StartRouter(t, 1, nil)
	r.Publish(t, testkit.Spec("ws.test", backend.Listener.Addr().String()))

	c, err := net.Dial("tcp", r.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: ws.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
	head := make([]byte, 0, 512)
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := c.Read(one); err != nil {
			t.Fatal(err, string(head))
		}
		head = append(head, one[0])
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") || !strings.Contains(string(head), "upgrade: echo\r\n") {
		t.Fatalf("head %q", head)
	}
	const total = 32 << 20 // far beyond the point where splicing begins
	sum := sha256.New()
	go func() {
		rng := rand.New(rand.NewPCG(1, 2))
		buf := make([]byte, 32<<10)
		for sent := 0; sent < total; sent += len(buf) {
			for i := range buf {
				buf[i] = byte(rng.Uint32())
			}
			sum.Write(buf)
			if _, err := c.Write(buf); err != nil {
				t.Error(err)
				return
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got := sha256.New()
	n, err := io.Copy(got, c)
	if err != nil || n != total || !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
		t.Fatalf("%d of %d bytes came back, %v", n, total, err)
	}
	if got := r.Stats(t).Spliced; runtime.GOOS == "linux" && got < 2*total*9/10 {
		t.Errorf("%d of %d bytes were spliced", got, 2*total)
	}
}
