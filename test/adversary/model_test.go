package adversary

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// plan is what a request asks of a pod that keeps the rules; it stands in the request's target.
type plan struct {
	token    string
	size     int           // bytes of the body of the answer
	delay    time.Duration // before the answer
	pieces   int           // in which the body comes, with as much delay between them; at least 1
	chunked  bool          // HTTP/1.1: the answer has no length
	trailers bool          // the answer has trailers
	early    bool          // 103 comes first
	typ      string        // media type
	refuse   int           // how often a pod that recycles its connections may say that it did not process it
	fail     int           // how often a pod answers 503 first
	hasty    bool          // HTTP/1.1: later responses come at the head of the request
}

func (p plan) target() string {
	b := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("/%s?size=%d&delay=%d&pieces=%d&chunked=%d&trailers=%d&early=%d&typ=%s&refuse=%d&fail=%d&hasty=%d",
		p.token, p.size, p.delay.Milliseconds(), p.pieces, b(p.chunked), b(p.trailers), b(p.early), p.typ, p.refuse, p.fail, b(p.hasty))
}

// planOf reads a target.
func planOf(target string) plan {
	path, query, _ := strings.Cut(target, "?")
	q, _ := url.ParseQuery(query)
	n := func(name string) int { k, _ := strconv.Atoi(q.Get(name)); return k }
	return plan{
		token: strings.TrimPrefix(path, "/"), size: n("size"), delay: time.Duration(n("delay")) * time.Millisecond, pieces: max(n("pieces"), 1),
		chunked: n("chunked") == 1, trailers: n("trailers") == 1, early: n("early") == 1, typ: q.Get("typ"), refuse: n("refuse"),
		fail: n("fail"), hasty: n("hasty") == 1,
	}
}

// content is the body of n bytes that belongs to a token.
func content(token string, n int) []byte {
	b := make([]byte, 0, n+len(token)+1)
	for len(b) < n {
		b = append(append(b, token...), ' ')
	}
	return b[:n]
}

// sum tells one body from another.
func sum(body []byte) string {
	h := fnv.New32a()
	h.Write(body)
	return fmt.Sprintf("%d-%08x", len(body), h.Sum32())
}

// ask is one request of a bystander and what has come of it.
type ask struct {
	plan

	who    string
	method string
	host   string
	body   []byte // of the request; nil: none
	expect bool   // Expect: 100-continue
	gzip   bool   // Accept-Encoding: gzip

	sent     time.Duration // since the run began
	bound    time.Duration // by when it must be answered, after sent
	status   int
	got      []byte
	answered string // sum of the request's body as the pod got it
	coding   string
	reached  string // x-token of the answer
	done     bool
}

func (a *ask) String() string {
	return fmt.Sprintf("%s: %s %s%s (body %d) sent at %v", a.who, a.method, a.host, a.target(), len(a.body), a.sent)
}

// patience is how long after its pod could have answered a request may take at most. Nothing takes time in virtual time but
// waiting, so that a request that waits for a connection, a window or processor time of another one is found.
const patience = 100 * time.Millisecond

// keptBody is how long the body of a request may be that a pod declared unprocessed and that is sent again nevertheless.
const keptBody = 16 << 10

// newAsk makes a request that the model knows the answer of.
func (w *world) newAsk(who, host string) *ask {
	a := &ask{who: who, host: host, method: "GET"}
	a.token = w.token()
	a.size = oneOf(w, 0, 1, w.n(100), w.n(3000), w.n(3000), w.n(3000), w.n(20000), w.n(150000))
	a.pieces, a.typ = 1, "text/plain"
	if w.chance(30) {
		a.delay = time.Duration(w.n(200)) * time.Millisecond
	}
	if w.chance(20) {
		a.pieces = w.some(2, 5)
	}
	a.chunked, a.trailers, a.early = w.chance(40), w.chance(15), w.chance(5)
	if a.trailers {
		a.chunked = true
	}
	if w.chance(10) {
		a.typ, a.gzip = "text/compressible", true
	}
	switch k := w.n(100); {
	case k < 10:
		a.method = "HEAD"
	case k < 35 && host != "drop.test": // a POST that was dropped is not repeated
		a.method = "POST"
		a.body = content(a.token, oneOf(w, 0, w.n(50), w.n(5000), w.n(5000), w.n(100000)))
		if host == "recycle.test" || host == "few.test" {
			a.body = a.body[:min(len(a.body), keptBody)]
		}
		a.expect = w.chance(20)
	}
	if host == "recycle.test" {
		a.refuse = w.n(3)
	}
	a.bound = a.delay*time.Duration(a.pieces) + patience
	return a
}

// begin notes that a request is on its way.
func (w *world) begin(a *ask) {
	a.sent = w.now()
	w.asks = append(w.asks, a)
	w.byToken[a.token] = a
	w.logf("%v", a)
}

// finish judges an answer that is whole.
func (w *world) finish(a *ask) {
	if a.done {
		w.failf("%v: answered twice", a)
		return
	}
	a.done = true
	if late := w.now() - a.sent - a.bound; late > 0 {
		w.failf("%v: answered %v too late", a, late)
	}
	want := content(a.token, a.size)
	if a.method == "HEAD" {
		want = nil
	}
	got := a.got
	if a.coding == "gzip" && a.gzip && a.method != "HEAD" {
		got = unzip(got)
	}
	switch {
	case a.status == 502 && a.mayFail():
		w.failed++
	case a.status != 200:
		w.failf("%v: status %d, want 200", a, a.status)
	case a.reached != a.token:
		w.failf("%v: got the answer to %q", a, a.reached)
	case !bytes.Equal(got, want):
		w.failf("%v: got a body of %d bytes, want %d: %.60q", a, len(got), len(want), got)
	case a.method == "POST" && a.answered != sum(a.body):
		w.failf("%v: the pod got %s, want %s", a, a.answered, sum(a.body))
	default:
		w.answered++
	}
}

// lost judges a request whose connection or stream ended before its answer did.
func (w *world) lost(a *ask, how string) {
	if !a.done {
		a.done = true
		w.failf("%v: %s", a, how)
	}
}
