package h1

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// answerOf reads one response of a router: its head, and its body without chunks.
func answerOf(t *testing.T, received []byte) (head, body string) {
	t.Helper()
	head, rest, ok := strings.Cut(string(received), "\r\n\r\n")
	if !ok {
		t.Fatalf("no answer: %q", received)
	}
	if strings.Contains(head, "transfer-encoding: chunked") {
		plain, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(rest)))
		if err != nil {
			t.Fatalf("%v: %q", err, rest)
		}
		rest = string(plain)
	}
	return head + "\r\n", rest
}

func unzip(t *testing.T, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func compressing(t *testing.T) *rig {
	return newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) {
		c.Compression = proxy.NewCompression("text/html  Text/Plain")
	}})
}

// TestCompression is the list of conditions: what is compressed, and what never is.
func TestCompression(t *testing.T) {
	page := strings.Repeat("hello ", 500)
	with := func(fields string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(page), page)
	}
	const html = "Content-Type: text/html\r\n"
	for _, tc := range []struct {
		name, request, answer string
		zipped                bool
		has                   []string
	}{
		{"plain", "", with(html), true, []string{"content-encoding: gzip\r\n", "vary: Accept-Encoding\r\n", "transfer-encoding: chunked\r\n"}},
		{"parameters", "", with("Content-Type: TEXT/plain; charset=utf-8\r\n"), true, nil},
		{"strong tag", "", with(html + "ETag: \"x\"\r\n"), true, []string{"etag: W/\"x\"\r\n"}},
		{"weak tag", "", with(html + "ETag: W/\"x\"\r\n"), true, []string{"etag: W/\"x\"\r\n"}},
		{"chunked", "", "HTTP/1.1 200 OK\r\n" + html + "Transfer-Encoding: chunked\r\n\r\nbb8\r\n" + page + "\r\n0\r\nX-T: 1\r\n\r\n", true, []string{"x-t: 1\r\n"}},
		{"until close", "", "HTTP/1.1 201 Created\r\n" + html + "\r\n" + page, true, nil},
		{"vary", "", with(html + "Vary: Accept-Encoding\r\n"), true, []string{"vary: Accept-Encoding\r\n"}},
		{"bad tag", "", with(html + "ETag: x\r\n"), false, []string{"etag: x\r\n"}},
		{"two tags", "", with(html + "ETag: \"x\"\r\nETag: \"y\"\r\n"), false, nil},
		{"other type", "", with("Content-Type: image/png\r\n"), false, nil},
		{"no type", "", with(""), false, nil},
		{"multipart", "", with("Content-Type: multipart/mixed\r\n"), false, nil},
		{"encoded", "", with(html + "Content-Encoding: br\r\n"), false, []string{"content-encoding: br\r\n"}},
		{"no-transform", "", with(html + "Cache-Control: public, No-Transform\r\n"), false, nil},
		{"status", "", strings.Replace(with(html), "200 OK", "404 Not Found", 1), false, nil},
		{"partial", "", strings.Replace(with(html), "200 OK", "206 Partial Content", 1), false, nil},
		{"1.0 pod", "", strings.Replace(with(html), "HTTP/1.1", "HTTP/1.0", 1), false, nil},
		{"client does not", "Accept-Encoding: gzip;q=0\r\n", with(html), false, []string{"content-length: 3000\r\n"}},
		{"1.0 client", "HTTP/1.0", with(html), false, nil},
		{"empty", "", "HTTP/1.1 200 OK\r\n" + html + "Content-Length: 0\r\n\r\n", false, []string{"content-length: 0\r\n"}},
	} {
		r := compressing(t)
		p := r.pod(1, always(tc.answer))
		if tc.name == "until close" {
			p.After = func(p *memnet.Peer, _ int) { p.Close() }
		}
		r.route("app", "app.test", nil, p.Addr)
		version, accept := "HTTP/1.1", "Accept-Encoding: deflate, gzip\r\n"
		if tc.request == "HTTP/1.0" {
			version = tc.request
		} else if tc.request != "" {
			accept = tc.request
		}
		c := r.say("GET / " + version + "\r\nHost: app.test\r\n" + accept + "\r\n")
		head, body := answerOf(t, c.Received())
		if zipped := strings.Contains(head, "content-encoding: gzip"); zipped != tc.zipped {
			t.Errorf("%s: compressed %v: %q", tc.name, zipped, head)
			continue
		}
		if tc.zipped {
			body = unzip(t, body)
		}
		if want := page; body != want && tc.name != "empty" {
			t.Errorf("%s: %d bytes of body", tc.name, len(body))
		}
		for _, s := range tc.has {
			if strings.Count(string(c.Received()), s) != 1 {
				t.Errorf("%s: %q is not once in %q", tc.name, s, head)
			}
		}
		if rec := r.logged[len(r.logged)-1]; tc.zipped && rec.BytesOut >= uint64(len(page)) {
			t.Errorf("%s: %d bytes logged", tc.name, rec.BytesOut)
		}
		r.wantQuiet()
	}
}

// TestCompressionOfHead: an answer without a body is as it was.
func TestCompressionOfHead(t *testing.T) {
	r := compressing(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"x\"\r\nContent-Length: 3000\r\n\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	got := string(r.say("HEAD / HTTP/1.1\r\nHost: app.test\r\nAccept-Encoding: gzip\r\n\r\n").Received())
	if strings.Contains(got, "gzip") || !strings.Contains(got, "etag: \"x\"\r\n") || !strings.Contains(got, "content-length: 3000\r\n") {
		t.Errorf("%q", got)
	}
}

// TestCompressedStream: an event goes out when it has come, not when the stream ends.
func TestCompressedStream(t *testing.T) {
	r := compressing(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nAccept-Encoding: gzip\r\n\r\n")
	text := ""
	for i := range 5 {
		event := fmt.Sprintf("data: event %d\n\n", i)
		p.Conns[0].Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event))
		r.net.Run()
		text += event
		_, rest, _ := strings.Cut(string(c.Received()), "\r\n\r\n")
		z, err := gzip.NewReader(httputil.NewChunkedReader(strings.NewReader(rest)))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(z); string(got) != text {
			t.Fatalf("after event %d the client has %q", i, got)
		}
	}
	p.Conns[0].Reset()
	r.net.Run()
	r.wantReason(proxy.ReasonUpstreamReset)
	r.wantQuiet()
	if bytes.HasSuffix(c.Received(), []byte("0\r\n\r\n")) {
		t.Error("a broken stream ends like a whole one")
	}
	// The compressor went back: the next answer is compressed as well.
	again := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nAccept-Encoding: gzip\r\n\r\n")
	if !strings.Contains(string(again.Received()), "content-encoding: gzip") {
		t.Errorf("%q", again.Received())
	}
}
