package conformance

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"turnout/internal/explain"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/field"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/h1"
)

// predictor explains each request of a client before the router gets it.
type predictor struct {
	t    *testing.T
	rig  *rig
	of   map[*client]*predicted
	list []*client
}

// predicted is what was said of the requests of one connection.
type predicted struct {
	at      int // bytes of what the client sent that are explained
	answers []*explain.Answer
	ends    bool // nothing of what follows is a request
	broken  bool // the body of the last one is malformed
}

// explainer explains requests to the rig.
func (r *rig) explainer(t *testing.T) *explain.Explainer {
	x, err := explain.New(explain.Config{Deciding: func() explain.Deciding {
		d := r.path.Deciding()
		d.Now = func() int64 { return r.path.Loops()[0].Now() }
		return d
	}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// sending explains the requests whose heads are complete with what c sends now.
func (p *predictor) sending(c *client) {
	one := p.of[c]
	if one == nil {
		one = &predicted{}
		p.of[c] = one
		p.list = append(p.list, c)
	}
	x := p.rig.explainer(p.t)
	if c.frames != nil {
		seen := map[uint32]bool{}
		if c.frames.asked == nil {
			c.frames.asked = func(id uint32, end bool, list []field.Field) {
				if seen[id] {
					return // trailers
				}
				seen[id] = true
				a, err := x.Explain(p.rig.store.Load(), explain.Query{List: list, Unended: !end, Client: c.Local().Addr(), Secure: c.tls != nil, ServerName: "app.test"})
				if err != nil {
					p.t.Fatal(err)
				}
				one.answers = append(one.answers, a)
			}
		}
		return
	}
	for !one.ends {
		rest := c.sent[one.at:]
		if bytes.HasPrefix(rest, []byte("PRI * HTTP/2.0\r\n\r\n")) && one.at == 0 {
			one.ends = true // they are not of HTTP/1.1
			return
		}
		skipped := http1.SkipEmptyLines(rest)
		end, err := http1.FindHeadEnd(rest[skipped:], 0, http1.Limits{})
		if err == nil && end == 0 {
			return
		}
		whole := min(len(rest), 200<<10) // more of a head that is too long changes nothing
		if err == nil {
			whole = skipped + end
		}
		a, explained := x.Explain(p.rig.store.Load(), explain.Query{Head: bytes.Clone(rest[:whole]), Client: c.Local().Addr(), Secure: c.tls != nil, ServerName: "app.test"})
		if explained != nil {
			p.t.Fatal(explained)
		}
		if p.body(one, rest, skipped); one.ends && !one.broken && err == nil && a.Outcome.Reason == "" {
			p.t.Fatalf("%q is not explained", rest)
		}
		one.answers = append(one.answers, a)
	}
}

// body goes over the body of the request that rest begins with.
func (p *predictor) body(one *predicted, rest []byte, skipped int) {
	h, none, status, _ := h1.ReadHead(rest, http1.Limits{})
	if status != 0 {
		one.ends = true
		return
	}
	end, _ := http1.FindHeadEnd(rest[skipped:], 0, http1.Limits{})
	at := skipped + end
	switch {
	case none:
	case h.ContentLength >= 0:
		if at += int(h.ContentLength); at > len(rest) {
			one.ends = true // what follows is body
		}
	default:
		var d http1.ChunkDecoder
		d.Reset(http1.ChunkLimits{})
		for state := http1.ChunkMore; state != http1.ChunkDone; {
			_, n, now, err := d.NextData(rest[at:])
			at += n
			if err != nil || now == http1.ChunkMore && n == 0 || at == len(rest) && now != http1.ChunkDone {
				one.ends, one.broken = true, err != nil
				break
			}
			state = now
		}
	}
	one.at += at
}

// later are the reasons that follow from what comes after the head of a request: its body, time, and the pod.
var later = map[proxy.Reason]bool{
	proxy.ReasonUpstreamReset: true, proxy.ReasonUpstreamHead: true, proxy.ReasonServerTimeout: true, proxy.ReasonClientTimeout: true,
	proxy.ReasonClientGone: true, proxy.ReasonTunnelClosed: true, proxy.ReasonBadRequest: true, proxy.ReasonContentSize: true, proxy.ReasonHeadSize: true,
}

// undisturbed says that the pod answers all that is asked with 200, and that no client does more than send.
func (c *conversation) undisturbed() bool { return len(c.replies) == 0 && c.one() }

// compare holds what was said of a request to what the access log says.
func compare(a *explain.Answer, rec *proxy.Record, strict bool) error {
	o := &a.Outcome
	route := ""
	if a.Route != nil {
		route = a.Route.Name
	}
	switch {
	case rec.Route != route && o.Reason != proxy.ReasonRefused.String():
		return fmt.Errorf("route %q was predicted, and it was %q", route, rec.Route)
	case o.By == explain.ByRouter && (o.Reason != rec.Reason.String() || o.Status != rec.Status || o.Detail != rec.Detail):
		return fmt.Errorf("%s %d (%s) was predicted, and it was %s %d (%s)", o.Reason, o.Status, o.Detail, rec.Reason, rec.Status, rec.Detail)
	case o.By == explain.ByEndpoint && strict && (rec.Reason != proxy.ReasonOK || rec.Status != 200):
		return fmt.Errorf("the answer of the pod was predicted, and it was %s %d (%s)", rec.Reason, rec.Status, rec.Detail)
	case o.By == explain.ByEndpoint && rec.Reason != proxy.ReasonOK && !later[rec.Reason]:
		return fmt.Errorf("the pod was predicted, and it was %s %d (%s)", rec.Reason, rec.Status, rec.Detail)
	}
	return nil
}

// inOrder puts records of the streams of a connection, which end in any order, into that of the requests: by method and host, and what was no request
// to those that are refused.
func inOrder(got []*proxy.Record, answers []*explain.Answer) []*proxy.Record {
	left, all := slices.Clone(got), make([]*proxy.Record, len(answers))
	for i, a := range answers {
		k := slices.IndexFunc(left, func(rec *proxy.Record) bool {
			url := "://" + string(rec.Host) + "/"
			if len(rec.Method) == 0 {
				return a.Outcome.Detail == rec.Detail && a.Outcome.By == explain.ByRouter
			}
			return string(rec.Method) == a.Request.Method && strings.Contains(a.Request.URL+"/", url)
		})
		if k >= 0 {
			all[i] = left[k]
			left = slices.Delete(left, k, k+1)
		}
	}
	return all
}

// TestExplainPredicts: what explain says of a request, before the router gets it, is what becomes of it.
func TestExplainPredicts(t *testing.T) {
	requests, byRouter := 0, 0
	for file, cases := range readConversations(t) {
		if strings.HasPrefix(file, "proxy-") {
			continue // these are about what comes before requests
		}
		for _, c := range cases {
			r := newRig(t, memnet.New(1), c.replies)
			p := &predictor{t: t, rig: r, of: map[*client]*predicted{}}
			if err := c.runWith(r, "", p.sending); err != nil {
				t.Errorf("%s/%s: %v", file, c.name, err)
				continue
			}
			records := map[netip.AddrPort][]*proxy.Record{}
			for i := range r.log {
				rec := &r.log[i]
				records[rec.Client] = append(records[rec.Client], rec)
			}
			for _, one := range p.list {
				got := records[one.Local()]
				if one.frames != nil {
					got = inOrder(got, p.of[one].answers)
				}
				for i, a := range p.of[one].answers {
					if i >= len(got) || got[i] == nil {
						continue // the connection ended before the router came to it
					}
					requests++
					if a.Outcome.By == explain.ByRouter {
						byRouter++
					}
					last := i == len(p.of[one].answers)-1
					if err := compare(a, got[i], c.undisturbed() && !(last && p.of[one].ends)); err != nil {
						t.Errorf("%s/%s: request %d: %v", file, c.name, i+1, err)
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d of them answered by the router", requests, byRouter)
	if requests < 300 || byRouter < 100 {
		t.Errorf("only %d requests were explained, %d of them answered by the router", requests, byRouter)
	}
}
