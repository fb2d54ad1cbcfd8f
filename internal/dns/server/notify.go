package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// notifier tells one secondary of changes. A zone that changes again before its notification is sent gets one.
type notifier struct {
	server *Server
	to     Secondary
	wake   chan struct{}

	mu    sync.Mutex
	zones map[string]*news // by origin
}

// news is that a zone has changed. It is another if the zone changes again.
type news struct {
	origin   string
	attempts int // that have failed
}

func newNotifier(s *Server, to Secondary) *notifier {
	return &notifier{server: s, to: to, wake: make(chan struct{}, 1), zones: map[string]*news{}}
}

// changed says that a zone has another serial.
func (n *notifier) changed(origin string) {
	n.mu.Lock()
	n.zones[origin] = &news{origin: origin}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// pending returns what there is to tell, first what has failed least often.
func (n *notifier) pending() []*news {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Values(n.zones), func(a, b *news) int {
		return cmp.Or(cmp.Compare(a.attempts, b.attempts), strings.Compare(a.origin, b.origin))
	})
}

// run tells of changes until ctx is done. A secondary that does not answer is notified of one zone between two pauses, which grow (RFC 1996
// section 3.6).
func (n *notifier) run(ctx context.Context) {
	pause := n.server.cfg.Limits.NotifyPause
	for {
		failed := false
		for _, about := range n.pending() {
			if failed = !n.tell(ctx, about); failed {
				break
			}
		}
		if !failed {
			pause = n.server.cfg.Limits.NotifyPause
			select {
			case <-ctx.Done():
				return
			case <-n.wake:
			}
			continue
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, maxNotifyPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// maxNotifyPause is the longest pause between attempts.
const maxNotifyPause = time.Minute

// tell tells of one zone. False: there was no answer.
func (n *notifier) tell(ctx context.Context, about *news) bool {
	z := n.server.set.Load().Zone(about.origin)
	if z == nil { // it is gone
		n.done(about)
		return true
	}
	limits := &n.server.cfg.Limits
	answered, err := n.exchange(ctx, z.SOA(), limits.NotifyTimeout<<min(about.attempts, 8))
	about.attempts++
	switch {
	case ctx.Err() != nil:
		return true
	case err == nil:
		n.server.notified.Add(1)
		n.server.cfg.Tell(Event{Kind: Notified, Zone: about.origin, Serial: z.Serial(), Peer: n.to.Addr})
	case !answered && about.attempts < limits.NotifyAttempts:
		return false
	default:
		n.server.notNotified.Add(1)
		n.server.cfg.Tell(Event{Kind: NotifyFailed, Zone: about.origin, Serial: z.Serial(), Peer: n.to.Addr, Err: err})
	}
	n.done(about)
	return answered
}

// done takes news from the list, unless there are others of the same zone.
func (n *notifier) done(about *news) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.zones[about.origin] == about {
		delete(n.zones, about.origin)
	}
}

// exchange sends one NOTIFY (RFC 1996 section 3) and waits for its answer. The error may be what the answer says.
func (n *notifier) exchange(ctx context.Context, soa *dns.SOA, timeout time.Duration) (answered bool, err error) {
	m := new(dns.Msg).SetNotify(soa.Hdr.Name)
	m.Answer = []dns.RR{soa}
	client := &dns.Client{Timeout: timeout}
	if n.to.Key != "" {
		key, ok := n.server.keys.Load().find(n.to.Key)
		if !ok {
			return false, fmt.Errorf("there is no key %q any more", n.to.Key)
		}
		client.TsigSecret = map[string]string{key.Name: key.secret}
		m.SetTsig(key.Name, key.Algorithm, fudge, n.server.cfg.Now().Unix())
	}
	conn, err := client.DialContext(ctx, n.to.Addr.String())
	if err != nil {
		return false, fmt.Errorf("cannot notify: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	answer, _, err := client.ExchangeWithConnContext(ctx, m, conn)
	if err != nil {
		return false, fmt.Errorf("cannot notify: %w", err)
	}
	if answer.Rcode != dns.RcodeSuccess {
		return true, fmt.Errorf("the answer is %s", dns.RcodeToString[answer.Rcode])
	}
	return true, nil
}
