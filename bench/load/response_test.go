package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func answer(head string, body []byte) []byte {
	return append([]byte(strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"), body...)
}

func TestCheckAnswer(t *testing.T) {
	body := Body(3)
	if len(body) != BodySize {
		t.Fatalf("body has %d bytes, want %d", len(body), BodySize)
	}
	good := answer("HTTP/1.1 200 OK\nserver: x\ncontent-length: 128\nset-cookie: a=b", body)
	for n := range good {
		if size, err := CheckAnswer(good[:n], body); size != 0 || err != nil {
			t.Fatalf("after %d bytes: %d, %v; want 0 and no error", n, size, err)
		}
	}
	if size, err := CheckAnswer(good, body); size != len(good) || err != nil {
		t.Fatalf("complete answer: %d, %v; want %d and no error", size, err, len(good))
	}

	refused := []struct {
		name string
		in   []byte
		want error
	}{
		{"other status", answer("HTTP/1.1 503 No\nContent-Length: 128", body), ErrStatus},
		{"other version", answer("HTTP/1.0 200 OK\nContent-Length: 128", body), ErrStatus},
		{"not HTTP", []byte("SSH"), ErrStatus},
		{"other length", answer("HTTP/1.1 200 OK\nContent-Length: 127", body[:127]), ErrFraming},
		{"no length", answer("HTTP/1.1 200 OK\nServer: x", body), ErrFraming},
		{"two lengths", answer("HTTP/1.1 200 OK\nContent-Length: 128\nContent-Length: 128", body), ErrFraming},
		{"odd length", answer("HTTP/1.1 200 OK\nContent-Length: +0x80", body), ErrFraming},
		{"chunked", answer("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", body), ErrFraming},
		{"close", answer("HTTP/1.1 200 OK\nConnection: Close\nContent-Length: 128", body), ErrClose},
		{"no colon", answer("HTTP/1.1 200 OK\nfoo\nContent-Length: 128", body), ErrHead},
		{"endless head", []byte("HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", maxHead)), ErrHead},
		{"other upstream", answer("HTTP/1.1 200 OK\nContent-Length: 128", Body(4)), ErrBody},
		{"wrong last byte", answer("HTTP/1.1 200 OK\nContent-Length: 128", append(Body(3)[:127], 'x')), ErrBody},
		{"more than the body", append(answer("HTTP/1.1 200 OK\nContent-Length: 128", body), 'H'), ErrExcess},
	}
	for _, c := range refused {
		if size, err := CheckAnswer(c.in, body); size != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %v; want 0, %v", c.name, size, err, c.want)
		}
	}
}

func TestTrafficOneRoute(t *testing.T) {
	tr, err := NewTraffic(TrafficConfig{})
	if err != nil {
		t.Fatal(err)
	}
	first, upstream := tr.Next(nil)
	want := "GET /items/0000000000 HTTP/1.1\r\nHost: r00000.bench.test\r\nUser-Agent: turnout-bench\r\nAccept: */*\r\n\r\n"
	if string(first) != want || upstream != 0 {
		t.Errorf("got %q for upstream %d", first, upstream)
	}
	if again, _ := tr.Next(first); string(again) != want {
		t.Errorf("second request is %q", again)
	}
}

func TestTrafficFreshURLs(t *testing.T) {
	tr, err := NewTraffic(TrafficConfig{Hosts: 1000, Upstreams: 16, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	seen, hosts := map[string]bool{}, map[int]bool{}
	var buf []byte
	for range 5000 {
		var upstream, path, host int
		buf, upstream = tr.Next(buf)
		if _, err := fmt.Sscanf(string(buf), "GET /items/%d HTTP/1.1\r\nHost: r%d.bench.test\r\n", &path, &host); err != nil {
			t.Fatalf("%q: %v", buf, err)
		}
		if url := string(buf[:60]); seen[url] {
			t.Fatalf("URL came twice: %q", url)
		} else {
			seen[url] = true
		}
		if host >= 1000 || upstream != host%16 {
			t.Fatalf("host %d goes to upstream %d", host, upstream)
		}
		hosts[host] = true
	}
	if len(hosts) < 950 {
		t.Errorf("only %d of 1000 hosts were used in 5000 requests", len(hosts))
	}
}

func TestTrafficFewURLs(t *testing.T) {
	tr, err := NewTraffic(TrafficConfig{Hosts: 10000, Distinct: 50})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var buf []byte
	for range 5000 {
		buf, _ = tr.Next(buf)
		seen[string(buf)] = true
	}
	if len(seen) != 50 || !strings.Contains(fmt.Sprint(seen), Host(49*200)) {
		t.Errorf("got %d URLs, want 50 spread up to %s", len(seen), Host(49*200))
	}
}

func TestTrafficAllocatesNothing(t *testing.T) {
	tr, err := NewTraffic(TrafficConfig{Hosts: 100, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	buf, _ := tr.Next(nil)
	body := Body(0)
	in := answer("HTTP/1.1 200 OK\nContent-Length: 128", body)
	n := testing.AllocsPerRun(100, func() {
		buf, _ = tr.Next(buf)
		if size, err := CheckAnswer(in, body); size == 0 || err != nil {
			t.Fatal(size, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

func TestNewTrafficRefuses(t *testing.T) {
	for _, cfg := range []TrafficConfig{{Hosts: MaxHosts + 1}, {Hosts: 10, Distinct: 11}} {
		if _, err := NewTraffic(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
