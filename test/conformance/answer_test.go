package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// answer is one answer as net/http reads it; err is that of its body.
type answer struct {
	*http.Response
	body []byte
	err  error
}

// readAnswer reads one final answer to method, and those of status 1xx before it.
func readAnswer(in *bufio.Reader, method string) (*answer, error) {
	for {
		a, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return nil, err //nolint:wrapcheck // the reader's own words
		}
		body, err := io.ReadAll(a.Body)
		if a.StatusCode >= 200 || a.StatusCode == http.StatusSwitchingProtocols {
			return &answer{a, body, err}, nil
		}
	}
}

const secondAnswer = "HTTP/1.1 200 OK\r\nx-second: 1\r\ncontent-length: 2\r\n\r\nok"

// answered has a pod answer raw, and then end the connection if fin, to a request that another one follows at once. Whatever
// the pod said, the client can tell where each answer ends: to net/http they are what the pod said to the first and, as long as
// the connection lives, what it said to the second.
func answered(t *testing.T, raw []byte, method string, fin bool, split int) error {
	n := memnet.New(uint64(split))
	n.Split(split)
	first := reply{data: raw, silent: len(raw) == 0 && !fin}
	if fin {
		first.ends = "fin"
	}
	r := newRig(t, n, []reply{first, {data: []byte(secondAnswer)}})
	c := &client{Peer: n.Connect(plainPort)}
	c.Write([]byte(method + " /first HTTP/1.1\r\nHost: app.test\r\n\r\nGET /second HTTP/1.1\r\nHost: app.test\r\n\r\n"))
	n.Run()
	n.Advance(31 * time.Second) // who leaves an answer half is waited for so long
	got, ended := slices.Clone(c.Received()), c.ended()
	if err := (&outcome{rig: r, clients: []*client{c}}).invariants(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(bytes.NewReader(got), 1<<17)
	if len(got) == 0 && ended {
		return nil
	}
	a, err := readAnswer(in, method)
	switch {
	case err != nil:
		return fmt.Errorf("net/http cannot read what the client got: %w in %q", err, got)
	case len(r.log) == 0:
		return fmt.Errorf("nothing is in the log; the client got %q", got)
	}
	if err := a.compare(raw, method, r.log[0].Reason == proxy.ReasonOK); err != nil {
		return fmt.Errorf("%w; the client got %q", err, got)
	}
	if _, err := in.Peek(1); err != nil && ended {
		return nil // the connection ended with the first
	}
	b, err := readAnswer(in, http.MethodGet)
	switch {
	case err != nil:
		return fmt.Errorf("net/http cannot read the second answer: %w in %q", err, got)
	case split == 0 && (b.Header.Get("X-Second") != "1" || string(b.body) != "ok" || b.err != nil) && b.StatusCode < 500:
		return fmt.Errorf("the second request got what belongs to the first: %q", got)
	}
	return nil
}

// compare looks that an answer the log calls good is what the pod said, as net/http reads it, and that another one is the
// router's own, or visibly cut off.
func (a *answer) compare(raw []byte, method string, good bool) error {
	if !good {
		page, _ := proxy.Page(a.StatusCode)
		if a.err == nil && method != http.MethodHead && (a.StatusCode < 500 || string(a.body) != page) {
			return fmt.Errorf("a broken answer of status %d looks whole", a.StatusCode)
		}
		return nil
	}
	if a.err != nil {
		return fmt.Errorf("a good answer is cut off: %w", a.err)
	}
	said, err := readAnswer(bufio.NewReaderSize(bytes.NewReader(raw), 1<<17), method)
	switch {
	case err != nil && strings.Contains(err.Error(), "bad trailer key"):
		return nil // net/http's own opinion
	case err != nil || said.err != nil:
		return fmt.Errorf("net/http cannot read what the pod said: %w", err)
	case said.StatusCode != a.StatusCode || !bytes.Equal(said.body, a.body):
		return fmt.Errorf("the pod said %d %q", said.StatusCode, said.body)
	}
	hop := append(strings.FieldsFunc(strings.Join(said.Header["Connection"], ","), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }),
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Upgrade", "Te", "Trailer", "Transfer-Encoding", "Content-Length")
	if said.Header.Get("Pragma") != "" {
		hop = append(hop, "Cache-Control") // made up by net/http
	}
	for _, name := range hop {
		said.Header.Del(name)
		a.Header.Del(name)
	}
	if fmt.Sprint(said.Header) != fmt.Sprint(a.Header) {
		return fmt.Errorf("the pod said %q", said.Header)
	}
	for name, values := range a.Trailer {
		if len(values) > 0 && !slices.Equal(values, said.Trailer[name]) {
			return fmt.Errorf("the pod said in trailers %q", said.Trailer)
		}
	}
	return nil
}

// FuzzAnswered: what an endpoint answers is replaced, or reaches the client as the one answer that others read in it.
func FuzzAnswered(f *testing.F) {
	for _, cases := range readConversations(f) {
		for _, c := range cases {
			for _, r := range c.replies {
				if len(r.data) > 0 && len(r.data) < 2000 {
					f.Add(r.data, uint8(0), r.ends == "fin", uint8(len(r.data)%2*5))
				}
			}
		}
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"), uint8(0), false, uint8(0))
	f.Add([]byte("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), uint8(1), false, uint8(0))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n"), uint8(2), true, uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, method uint8, fin bool, split uint8) {
		if len(raw) > 32<<10 {
			return
		}
		m := []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions}[method%4]
		if err := answered(t, raw, m, fin, int(split%16)); err != nil {
			t.Fatalf("%v\nthe pod answered %s with %q", err, m, raw)
		}
	})
}
