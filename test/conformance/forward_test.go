package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"turnout/internal/reactor/memnet"
)

// forwarded sends raw as one client connection and checks what every conversation
// owes, whatever it says: what reached the pod is whole requests, of which net/http
// finds the same and fasthttp no more, and as many as the client got answers.
func forwarded(t *testing.T, raw []byte, split int) error {
	n := memnet.New(uint64(split))
	n.Split(split)
	r := newRig(t, n, nil)
	c := &client{Peer: n.Connect(plainPort), sent: raw}
	c.Write(raw)
	n.Run()
	c.CloseWrite()
	n.Advance(time.Second)
	o := &outcome{rig: r, clients: []*client{c}}
	if err := o.invariants(); err != nil {
		return err
	}
	return errors.Join(r.pod.sameRequests(), answers(c, r.pod.requests))
}

// answers checks that a client got as many answers as the pod got requests, or more.
func answers(c *client, requests int) error {
	got := bytes.Count(c.Received(), []byte("HTTP/1.1 200 OK\r\n"))
	if got != requests {
		return fmt.Errorf("the pod answered %d requests, the client got %d answers", requests, got)
	}
	return nil
}

// sameRequests reads what a connection brought with two readers. fasthttp refuses
// some names of trailers, and would make room for any body that is announced; it
// must not find more than there is.
func (p *pod) sameRequests() error {
	std, fast := 0, 0
	for rest := p.got.Bytes(); ; std++ {
		_, whole, err := readRequest(rest)
		if err != nil || whole == 0 {
			break
		}
		rest = rest[whole:]
	}
	in := bufio.NewReaderSize(bytes.NewReader(p.got.Bytes()), 64<<10)
	for {
		var q fasthttp.Request
		if q.ReadLimitBody(in, 1<<20) != nil || q.MayContinue() && q.ContinueReadBody(in, 1<<20) != nil {
			break
		}
		fast++
	}
	if len(p.conns) <= 1 && (std != p.requests || fast > p.requests) {
		return fmt.Errorf("net/http finds %d requests, fasthttp %d, the pod answered %d in %q", std, fast, p.requests, p.got.Bytes())
	}
	return nil
}

// corpus reads messages that others collected, when they lie beside the repository;
// TURNOUT_CORPORA names another folder.
func corpus(t testing.TB, name string) (list []struct {
	ID  string `json:"id"`
	Raw []byte `json:"raw"`
}) {
	t.Helper()
	dir := os.Getenv("TURNOUT_CORPORA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		t.Logf("no %s in %s: nothing of it is checked", name, dir)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCorporaAreForwardedWhole(t *testing.T) {
	for _, name := range []string{"http11probe.json", "llhttp.json"} {
		for _, m := range corpus(t, name) {
			raw := bytes.ReplaceAll(m.Raw, []byte("{H}"), []byte("app.test"))
			if !bytes.Contains(bytes.ToLower(raw), []byte("\r\nhost:")) {
				raw = bytes.ReplaceAll(raw, []byte(" HTTP/1.1\r\n"), []byte(" HTTP/1.1\r\nHost: app.test\r\n"))
			}
			for _, split := range []int{0, 5} {
				if err := forwarded(t, raw, split); err != nil {
					t.Errorf("%s, split at %d: %v", m.ID, split, err)
				}
			}
		}
	}
}

// FuzzForwarded: what a client sends is rejected, or reaches the pod as requests that
// others read as the same requests.
func FuzzForwarded(f *testing.F) {
	for _, cases := range readConversations(f) {
		for _, c := range cases {
			var sent []byte
			for _, s := range c.steps {
				if s.verb == "send" {
					sent = append(sent, s.data...)
				}
			}
			if len(sent) < 2000 {
				f.Add(sent, uint8(0))
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, split uint8) {
		if len(raw) > 64<<10 {
			return
		}
		if err := forwarded(t, raw, int(split%16)); err != nil {
			t.Fatalf("%v\nsent %q", err, raw)
		}
	})
}
