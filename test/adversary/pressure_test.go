package adversary

import (
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/net/http2"
)

// presser is a client whose uploads use up the memory for kept request bodies during the whole run.
// They go to slow pods, and to pods of the adversary, which fail, refuse or forget them.
type presser struct {
	w   *world
	rng *rand.Rand
	s   *side
}

// keptBodies is the memory for kept bodies of a run. It is small, so that pressure on it never
// ends.
func (w *world) keptBodies() int { return w.some(16, 160) << 10 }

func (w *world) startPresser() {
	p := &presser{w: w, rng: rand.New(rand.NewPCG(w.seed, 0x7072657373))}
	w.net.After(0, p.next)
}

func (p *presser) next() {
	w := p.w
	if w.calm {
		if p.s != nil && !p.s.gone {
			p.s.gone = true
			p.s.peer.Reset()
		}
		return
	}
	if p.s == nil || p.s.gone || p.s.away {
		p.s = newSide(w, "presser", w.net.Connect(plainPort), true)
		p.s.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	}
	for range 1 + p.rng.IntN(6) {
		if p.s.openFlows() < 50 {
			p.upload()
		}
	}
	p.s.flush()
	w.net.After(time.Duration(10+p.rng.IntN(150))*time.Millisecond, p.next)
}

// upload begins one upload, and usually does not end it.
func (p *presser) upload() {
	w := p.w
	hosts := []string{"evil2.test", "evil2.test", "evil1.test", "shared1.test", "shared2.test"}
	host := hosts[p.rng.IntN(len(hosts))]
	length := []int{1000, 5000, 16 << 10, 64 << 10, 128 << 10}[p.rng.IntN(5)]
	plan := plan{token: w.token(), size: 10, pieces: 1, typ: "text/plain", delay: time.Duration(p.rng.IntN(3000)) * time.Millisecond}
	plan.fail, plan.hasty = p.rng.IntN(2), p.rng.IntN(2) == 0
	a := &ask{plan: plan, who: "presser", host: host, method: []string{"PUT", "POST"}[p.rng.IntN(2)], body: content(plan.token, length)}
	w.byToken[a.token] = a
	pairs := []string{":method", a.method, ":scheme", "http", ":authority", host, ":path", plan.target()}
	if p.rng.IntN(4) > 0 {
		pairs = append(pairs, "content-length", strconv.Itoa(length))
	}
	f := p.s.open(false, &theirs{}, pairs...)
	if isEvil(host) && p.rng.IntN(2) == 0 {
		p.s.send(f, a.body[:1], false, nil)
		w.net.After(time.Duration(1+p.rng.IntN(5))*time.Second, func() {
			if !p.s.gone && !f.closed() && !f.localEnd {
				p.s.reset(f, http2.ErrCodeCancel)
				p.s.flush()
			}
		})
		return
	}
	p.s.send(f, a.body, true, nil)
}

// whole checks a complete request at a pod: it has the body that a bystander or presser sent.
func (w *world) whole(token, method string, body []byte) {
	if a := w.byToken[token]; a != nil && (method != a.method || sum(body) != sum(a.body)) {
		w.failf("%v: a pod got a complete %s with a body of %d bytes: %.60q", a, method, len(body), body)
	}
}

// mayFail reports whether a request may end with 502. Its pod may refuse it, and then it is retried
// only if its body was kept.
func (a *ask) mayFail() bool {
	return len(a.body) > 0 && (a.host == "recycle.test" || a.host == "few.test")
}
