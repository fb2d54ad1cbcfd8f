package h2

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// wholeCase is one combination of TestRequestIsWholeOrNotSent.
type wholeCase struct {
	method, body string // none, fixed, chunked or trailers
	front, back  string // h1 or h2
	failure      string // of the first attempt: none, reset, status or refuse
	midway       bool   // half of the body has been sent when it comes
	// What the next attempt waits for, or the first one without a failure: none, connect, queue or
	// backoff.
	wait     string
	pressure string // on the memory for kept bodies: none, waiting or always
	early    bool   // pods respond at the head of a request
}

func (c wholeCase) String() string {
	return fmt.Sprintf("%s %s %s to %s, failure %s midway %v, wait %s, pressure %s, early %v", c.method, c.body, c.front, c.back, c.failure, c.midway, c.wait, c.pressure, c.early)
}

// wholeCases returns all combinations.
func wholeCases() (all []wholeCase) {
	for _, method := range []string{"GET", "PUT", "POST"} {
		bodies := []string{"fixed", "chunked", "trailers"}
		if method == "GET" {
			bodies = []string{"none"}
		}
		for _, body := range bodies {
			for n := range 2 * 2 * 4 * 2 * 4 * 3 * 2 {
				pick := func(of ...string) string {
					k := n % len(of)
					n /= len(of)
					return of[k]
				}
				all = append(all, wholeCase{
					method: method, body: body, front: pick("h1", "h2"), back: pick("h1", "h2"),
					failure: pick("none", "reset", "status", "refuse"), midway: pick("", "midway") != "",
					wait: pick("none", "connect", "queue", "backoff"), pressure: pick("none", "waiting", "always"), early: pick("", "early") != "",
				})
			}
		}
	}
	return all
}

// wholeRun is the course of one case.
type wholeRun struct {
	wholeCase
	pressed

	t        *testing.T
	r        *rig
	pods     *strictPods
	failed   *strictRequest // the first attempt
	succeeds bool           // the client gets status 200 in spite of the pressure
}

// pressed is the memory for kept bodies and the uploads that compete for it.
type pressed struct {
	kept    int // Config.KeptBodies
	size    int // of the victim's body
	uploads int // of other clients, at each step with pressure
	each    int // bytes of each
}

// tight is memory with just enough space for the victim's body.
var tight = pressed{kept: 3 * 16 << 10, size: 3000, uploads: 6, each: 10000}

// TestRequestIsWholeOrNotSent sends a request through every way to a second attempt while uploads
// of others use up the memory for kept bodies. Each byte that pods get belongs to its own request,
// and a complete request has the body of its client. The requests of the next clients arrive
// unchanged. With memory to spare, repeatable requests succeed.
func TestRequestIsWholeOrNotSent(t *testing.T) {
	cases, repeated := 0, 0
	for n, c := range wholeCases() {
		if testing.Short() && n%7 != 0 {
			continue
		}
		cases++
		if run := (&wholeRun{wholeCase: c, pressed: tight, t: t}); run.play() > 1 {
			repeated++
		}
		if t.Failed() {
			t.Fatalf("in case %d: %v", n, c)
		}
	}
	t.Logf("%d cases, in %d of them pods got the request more than once", cases, repeated)
	if repeated < cases/10 {
		t.Errorf("only %d of %d requests were repeated", repeated, cases)
	}
}

// TestUploadsOfOthersDoNotEmptyRequests sends enough uploads at once to use up the default memory
// for kept bodies. In these cases requests were once sent with their length and without their body.
func TestUploadsOfOthersDoNotEmptyRequests(t *testing.T) {
	small := pressed{size: 16 << 10, uploads: 270, each: 16 << 10}
	large := pressed{size: 3000, uploads: 33, each: 128 << 10}
	for _, c := range []wholeRun{
		{wholeCase: wholeCase{method: "PUT", body: "fixed", front: "h1", back: "h1", failure: "status", wait: "backoff"}, pressed: small},
		{wholeCase: wholeCase{method: "PUT", body: "fixed", front: "h1", back: "h1", failure: "status", wait: "backoff", early: true}, pressed: small},
		{wholeCase: wholeCase{method: "PUT", body: "chunked", front: "h1", back: "h1", failure: "status", wait: "backoff", midway: true}, pressed: small},
		{wholeCase: wholeCase{method: "PUT", body: "chunked", front: "h1", back: "h1", failure: "reset", wait: "connect", midway: true}, pressed: small},
		{wholeCase: wholeCase{method: "POST", body: "fixed", front: "h1", back: "h2", failure: "refuse", wait: "connect"}, pressed: small},
		{wholeCase: wholeCase{method: "POST", body: "fixed", front: "h2", back: "h2", failure: "refuse", wait: "connect"}, pressed: large},
		{wholeCase: wholeCase{method: "PUT", body: "fixed", front: "h2", back: "h2", failure: "status", wait: "backoff"}, pressed: large},
	} {
		c.pressure = "waiting"
		t.Run(c.String(), func(t *testing.T) {
			c.t = t
			c.succeeds = true
			if n := c.play(); n < 2 {
				t.Errorf("pods got the request %d times", n)
			}
		})
	}
}

// start makes the router, two pods that fail or not, and the pods that never respond to the
// uploads of others.
func (w *wholeRun) start() {
	w.r = newRigOn(w.t, memnet.New(1), func(cfg *proxy.Config) { cfg.KeptBodies = w.kept })
	w.pods = newStrictPods(w.r, w.back, 2)
	w.pods.onHead = w.head
	w.pods.onWhole = w.whole
	w.r.route("app", "app.test", func(s *routing.RouteSpec) {
		w.pods.speak(s)
		s.Balance = balancer.RoundRobin
		s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 3}
		switch w.wait {
		case "backoff":
			s.Policy.Retry.Backoff = time.Second
		case "queue":
			s.Limit = 1
		}
	}, w.pods.addrs()...)
	silent := newStrictPodsAt(w.r, "h2", 10, 1)
	silent.deaf, silent.onWhole = true, func(*strictRequest) {}
	for _, namespace := range []string{"ns", "other"} {
		w.r.route("sink", "sink-"+namespace+".test", func(s *routing.RouteSpec) { h2c(s); s.Namespace = namespace }, silent.addrs()...)
	}
}

// press lets other clients send more uploads than can be kept, in the namespace of the victim and
// in another one.
func (w *wholeRun) press(step string) {
	if w.pressure != "always" && (w.pressure != "waiting" || step != "waiting") {
		return
	}
	const streams = 90 // per connection
	for left := w.uploads; left > 0; left -= streams {
		cl := w.r.connect()
		for i := range uint32(min(left, streams)) {
			host := []string{"sink-ns.test", "sink-other.test"}[i%2]
			cl.headers(2*i+1, false, ":method", "POST", ":scheme", "http", ":authority", host, ":path", "/", "content-length", strconv.Itoa(w.each))
			// The beginning of a body reserves the announced length.
			cl.data(2*i+1, w.each <= 16<<10, strings.Repeat("p", min(w.each, 16<<10)))
		}
		cl.run()
	}
}

// head is called at the head of a request.
func (w *wholeRun) head(q *strictRequest) {
	switch {
	case q.path == "/victim" && w.failed == nil && w.failure != "none":
		w.failed = q
	case q.path == "/victim" && w.early:
		q.answer(200)
	}
}

// whole is called at the end of a request. The first attempt, and requests that occupy pods, get no
// response yet.
func (w *wholeRun) whole(q *strictRequest) {
	if q != w.failed && q.path != "/hold" {
		q.answer(200)
	}
}

// fail ends the first attempt, if it has reached a pod.
func (w *wholeRun) fail() {
	if w.failed == nil || w.failed.answered {
		return
	}
	if w.wait == "connect" {
		for _, addr := range w.pods.addrs() {
			w.r.net.HangDial(addr)
		}
		w.failed.leave()
	}
	switch w.failure {
	case "reset":
		w.failed.reset()
	case "status":
		w.failed.answer(503)
	case "refuse":
		w.failed.refuse()
	}
	w.r.net.Run()
}

// play runs the case and returns how often pods got the request.
func (w *wholeRun) play() (attempts int) {
	w.start()
	r, body := w.r, strings.Repeat("victim: ", w.size/8)
	if w.body == "none" {
		body = ""
	}
	w.pods.bodies["/victim"] = body
	w.obstruct()
	w.press("before")
	v := w.victim(len(body))
	w.press("head")
	v.data(body[:len(body)/2])
	w.press("half")
	if w.midway {
		w.fail()
		w.press("waiting")
	}
	v.data(body[len(body)/2:])
	v.end()
	w.press("sent")
	if !w.midway {
		w.fail()
		w.press("waiting")
	}
	for _, addr := range w.pods.addrs() {
		r.net.AllowDial(addr)
	}
	for _, q := range w.pods.requests {
		if q.path == "/hold" && !q.answered {
			q.answer(200)
		}
	}
	r.net.Run()
	w.press("after")
	wait := 1100 * time.Millisecond // longer than the backoff
	if w.wait == "connect" {
		wait = 5500 * time.Millisecond // longer than the connect timeout
	}
	r.net.Advance(wait)
	for range 4 { // before the idle timeout of connections
		r.get1("/next").want(w.t, 200)
	}
	r.net.Advance(3 * time.Minute) // the uploads without a response time out
	w.pods.check(w.t)
	for _, q := range w.pods.requests {
		if q.path == "/victim" {
			attempts++
		}
		if !q.complete && !w.early && q != w.failed {
			w.t.Errorf("pod %d got %d bytes of %s and then nothing", q.pod, len(q.body), q.path)
		}
	}
	status := v.status()
	if w.pods.complete("/victim") == 0 && status == 200 && !w.early {
		w.t.Errorf("the client got %d, and no pod the whole request", status)
	}
	if w.succeeds && status != 200 {
		w.t.Errorf("the client got %d, want 200", status)
	}
	repeatable := w.body != "trailers" && w.method != "POST" || w.failure == "none"
	if w.pressure == "none" && repeatable && status != 200 && !(w.wait == "queue" && w.failure == "reset") {
		w.t.Errorf("the client got %d, want 200", status)
	}
	if r.worker.Kept() != 0 {
		w.t.Errorf("%d bytes are kept", r.worker.Kept())
	}
	return attempts
}

// obstruct makes the first attempt wait unless it fails. For a second attempt that has to queue, it
// occupies the pods.
func (w *wholeRun) obstruct() {
	switch {
	case w.wait == "connect" && w.failure == "none":
		w.r.net.HangDial(w.pods.addrs()[0])
		w.r.net.HangDial(w.pods.addrs()[1])
	case w.wait == "queue":
		w.r.get1("/hold")
		if w.failure == "none" {
			w.r.get1("/hold")
		}
	}
}

// victim begins the request of the case.
func (w *wholeRun) victim(size int) *victim {
	v := &victim{w: w}
	length := ""
	if w.body == "fixed" {
		length = strconv.Itoa(size)
	}
	if w.front == "h1" {
		framing := ""
		switch {
		case length != "":
			framing = "Content-Length: " + length + "\r\n"
		case w.body != "none":
			framing = "Transfer-Encoding: chunked\r\n"
		}
		v.old = w.r.http1(w.method + " /victim HTTP/1.1\r\nHost: app.test\r\n" + framing + "\r\n")
		return v
	}
	v.cl = w.r.connect()
	var fields []string
	if length != "" {
		fields = []string{"content-length", length}
	}
	v.cl.request(1, w.body == "none", w.method, "/victim", fields...)
	v.cl.run()
	return v
}

// victim is the client of the case.
type victim struct {
	w   *wholeRun
	old *client1 // nil over HTTP/2
	cl  *client  // nil over HTTP/1.1
}

func (v *victim) data(p string) {
	switch {
	case p == "":
	case v.cl != nil:
		v.cl.data(1, false, p)
		v.cl.run()
	case v.w.body == "fixed":
		v.old.send(p)
	default:
		v.old.send(fmt.Sprintf("%x\r\n%s\r\n", len(p), p))
	}
}

func (v *victim) end() {
	switch {
	case v.w.body == "none":
	case v.cl != nil && v.w.body == "trailers":
		v.cl.headers(1, true, "x-sum", "7")
		v.cl.run()
	case v.cl != nil:
		v.cl.data(1, true, "")
		v.cl.run()
	case v.w.body == "chunked":
		v.old.send("0\r\n\r\n")
	case v.w.body == "trailers":
		v.old.send("0\r\nX-Sum: 7\r\n\r\n")
	}
}

// status returns the status of the response, 0 without one.
func (v *victim) status() (status int) {
	if v.cl != nil {
		v.cl.run()
		status, _ = strconv.Atoi(v.cl.stream(1).status)
		return status
	}
	_, _ = fmt.Sscanf(v.old.got(), "HTTP/1.1 %d", &status)
	return status
}
