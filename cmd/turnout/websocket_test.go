package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnout/controller"
	"turnout/internal/server"
)

// TestWebSocketOverHTTP2: a client that knows RFC 8441 (golang.org/x/net's) talks to an endpoint of HTTP/1.1 through a stream,
// while other streams of the connection carry requests.
func TestWebSocketOverHTTP2(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(echoSocket))
	t.Cleanup(pod.Close)
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(tlsRoute("chat", "edge")+slice("secure", pod.Listener.Addr())))
	plane, _ := startInProcess(t, dir, controller.Options{})
	client := dialHTTP2(t, plane.HTTPS().String(), "chat.test", "h2")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, path := range []string{"/one", "/two"} {
		body, messages := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, "CONNECT", "https://chat.test"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(":protocol", "websocket")
		req.Header.Set("Sec-WebSocket-Version", "13")
		resp, err := client.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || resp.Header.Get("Sec-WebSocket-Accept") != "" {
			t.Fatalf("answer %+v", resp)
		}
		answers := bufio.NewReader(resp.Body)
		for i := range 3 {
			wantAnswer(t, client, "chat.test", 200, "a page")
			text := fmt.Sprintf("message %d on %s", i, path)
			// A text frame of a client, its mask all zeros (RFC 6455 section 5.2).
			if _, err := messages.Write(append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 2+len(text))
			if _, err := io.ReadFull(answers, got); err != nil || string(got[2:]) != text {
				t.Fatalf("got %q, %v, want %q", got, err, text)
			}
		}
		messages.Close()
		if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
			t.Errorf("after the end: %q, %v", rest, err)
		}
		resp.Body.Close()
	}
	wantAnswer(t, client, "chat.test", 200, "a page")
}

// echoSocket serves WebSocket (RFC 6455): text frames of up to 125 bytes come back. Everything else gets a page.
func echoSocket(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		_, _ = io.WriteString(w, "a page")
		return
	}
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	for {
		head := make([]byte, 6)
		if _, err := io.ReadFull(buffered, head); err != nil {
			return
		}
		text := make([]byte, head[1]&0x7f)
		if _, err := io.ReadFull(buffered, text); err != nil {
			return
		}
		for i := range text {
			text[i] ^= head[2+i%4]
		}
		_, _ = conn.Write(append([]byte{head[0], byte(len(text))}, text...))
	}
}

// TestTunnelsOfADeletedRoute: a WebSocket over HTTP/2 ends some time after its route was deleted, if that is asked for.
func TestTunnelsOfADeletedRoute(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(echoSocket))
	t.Cleanup(pod.Close)
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(tlsRoute("chat", "edge")+slice("secure", pod.Listener.Addr())))
	plane, _ := startInProcess(t, dir, controller.Options{}, func(c *server.Config) { c.Proxy.CloseTunnels = 50 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	body, messages := io.Pipe()
	defer messages.Close()
	req, err := http.NewRequestWithContext(ctx, "CONNECT", "https://chat.test/one", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(":protocol", "websocket")
	req.Header.Set("Sec-WebSocket-Version", "13")
	resp, err := dialHTTP2(t, plane.HTTPS().String(), "chat.test", "h2").RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	if open := plane.Tunnels(); len(open) != 1 {
		t.Errorf("open tunnels: %v", open)
	}
	write(t, dir, "all.yaml", []byte(slice("secure", pod.Listener.Addr())))
	if _, err := resp.Body.Read(make([]byte, 1)); err == nil || ctx.Err() != nil {
		t.Errorf("the tunnel goes on: %v, %v", err, ctx.Err())
	}
}
