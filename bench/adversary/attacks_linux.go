package adversary

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

// attack is one way to harm others.
type attack struct {
	name    string
	share   []string // of the hosts of bystanders, besides those that are theirs alone
	seconds int      // at least
	flood   bool     // half of the bystanders' requests must be as fast as slower allows, too
	// attackers is what a process of its own does until it is killed.
	attackers func(ctx context.Context, t *targets)
	// meanwhile looks at what else was promised while the attack goes on, and may take part in it; nil: nothing.
	meanwhile func(ctx context.Context, r *rig, length time.Duration) (wrong []string)
	// after does the same when it is over; before is the number of descriptors that the router had.
	after func(r *rig, before int) (wrong []string)
}

// attacks are made one after the other.
var attacks = []attack{
	{name: "own-answers-1", attackers: crowd(4, pipeline("redirect.test", "/"))},
	{name: "own-answers-2", attackers: crowd(4, openStreams("redirect.test", "/"))},
	{name: "pods-answers-1", share: []string{"shared"}, attackers: crowd(4, pipeline("shared1.test", "/large"))},
	{name: "pods-answers-2", share: []string{"shared"}, attackers: crowd(4, openStreams("shared2.test", "/large"))},
	{name: "slow-reader", share: []string{"shared"}, attackers: crowd(3, shutWindows("shared2.test", "/large"))},
	{name: "leavers", share: []string{"shared"}, attackers: crowd(1, leaveEvents("shared2.test", "/events"))},
	{name: "tunnels", share: []string{"shared"}, attackers: crowd(4, leaveTunnels("shared1.test", "/tunnel")), after: descriptorsGone},
	{name: "frozen-pod", seconds: 20, meanwhile: freezePod},
	{name: "dropping-pod", meanwhile: askDropping},
	{name: "tiny-requests", flood: true, attackers: crowd(4, tinyRequests("flooded1.test"))},
	{name: "tiny-streams", flood: true, attackers: crowd(4, tinyStreams("flooded1.test"))},
	{name: "tiny-streams-h2", flood: true, attackers: crowd(4, tinyStreams("flooded2.test"))},
	{name: "tiny-redirects", flood: true, attackers: crowd(4, tinyStreams("redirect.test"))},
	{name: "handshakes", attackers: crowd(300, deafHandshake("chain.test"))},
	{name: "chains", attackers: crowd(8, costlyChains("clients.test")), meanwhile: handshakesOfOthers},
	{name: "match-work-1", attackers: both(crowd(4, costlyRequests(servedHost)), crowd(4, costlyRequests(costlyHost))), meanwhile: costlyEnd},
	{name: "match-work-2", attackers: both(crowd(2, costlyStreams(servedHost)), crowd(2, costlyStreams(costlyHost))), meanwhile: costlyEnd},
	{name: "loop", attackers: crowd(20, askLoop("loop.test")), after: descriptorsGone},
	{name: "admin-connections", attackers: crowd(300, idleAdmin), meanwhile: probesAnswer},
	{name: "admin-readers", attackers: crowd(250, deafReader("/routes")), meanwhile: probesAnswer},
}

// attackersRole is the process of the attackers.
const attackersRole = "attackers"

// beAttackers makes an attack until ctx is done. The arguments are its
// name and the addresses of HTTP, TLS, the admin port and the Gateway.
func beAttackers(ctx context.Context, args []string) error {
	for i := range attacks {
		if a := &attacks[i]; len(args) == 5 && a.name == args[0] {
			if a.attackers != nil {
				a.attackers(ctx, &targets{HTTP: args[1], HTTPS: args[2], Admin: args[3], Gateway: args[4]})
			}
			<-ctx.Done()
			return nil
		}
	}
	return fmt.Errorf("cannot attack with %q", args)
}

// crowd is so many attackers at once, each of which begins anew when it was thrown out, but not at once.
func crowd(n int, act func(ctx context.Context, t *targets)) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		site.Together(n, n, func(int) {
			for ctx.Err() == nil {
				_ = site.Try(func() { act(ctx, t) })
				_ = site.Pause(ctx, 20*time.Millisecond)
			}
		})
	}
}

// both starts two crowds.
func both(first, second func(context.Context, *targets)) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		go second(ctx, t)
		first(ctx, t)
	}
}

// held keeps a connection open until the other side ends it or ctx is done, and reads nothing.
func held(ctx context.Context, c net.Conn) {
	defer c.Close()
	var b [1]byte
	for ctx.Err() == nil {
		_ = site.Pause(ctx, 100*time.Millisecond)
		_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Write(b[:0]); err != nil {
			return
		}
	}
}

// descriptorsGone waits for the descriptors that an attack left. Some may be more than before it: connections to pods that are kept,
// those of bystanders that end.
func descriptorsGone(r *rig, before int) []string {
	const patience, leftOver = 15 * time.Second, 40
	n := 0
	if r.Until(patience, 100*time.Millisecond, func() bool { n = len(r.router.Descriptors()); return n <= before+leftOver }) {
		return nil
	}
	return []string{fmt.Sprintf("%v after the attack the router has %d descriptors, %d before it", patience, n, before)}
}

// tries counts what failed, and keeps the first error.
type tries struct {
	mu          sync.Mutex
	all, failed int
	first       error
}

func (t *tries) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all++; err != nil {
		if t.failed++; t.first == nil {
			t.first = err
		}
	}
}

// wrong is what is wrong if any of them failed, whatever they are.
func (t *tries) wrong(what string) []string {
	if t.failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d %s failed, first: %v", t.failed, t.all, what, t.first)}
}

// probesAnswer asks for health as the kubelet does.
func probesAnswer(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	var probes tries
	for began := time.Now(); time.Since(began) < length; _ = site.Pause(ctx, 100*time.Millisecond) {
		for _, path := range []string{"/healthz", "/healthz/ready"} {
			patient, end := context.WithTimeout(ctx, time.Second)
			probes.add(testhttp.Ask(patient, &http.Transport{DisableKeepAlives: true}, "http://"+r.router.Admin+path, ""))
			end()
		}
	}
	return probes.wrong("probes")
}

// handshakesOfOthers opens new TLS connections to a host of another namespace. Each may take a
// second.
func handshakesOfOthers(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	var others tries
	for began := time.Now(); time.Since(began) < length; _ = site.Pause(ctx, 50*time.Millisecond) {
		patient, end := context.WithTimeout(ctx, time.Second)
		dialer := tls.Dialer{Config: &tls.Config{ServerName: "chain.test", InsecureSkipVerify: true}}
		c, err := dialer.DialContext(patient, "tcp", r.router.HTTPS)
		if others.add(err); err == nil {
			_ = c.Close()
		}
		end()
	}
	return others.wrong("handshakes of others")
}

// freezePod has a pod vanish under load. Requests that came before may fail after the server timeout of 2 s; a while later
// none does any more.
func freezePod(ctx context.Context, r *rig, length time.Duration) []string {
	const noticed = 10 * time.Second
	b := newBystander(r.router.HTTP, "freeze.test", true, false)
	if err := b.ask(ctx); err != nil {
		return []string{fmt.Sprintf("before the pod vanished: %v", err)}
	}
	r.frozen.freeze()
	defer r.frozen.thaw()
	vanished := time.Now()
	ctx, end := context.WithTimeout(ctx, length-3*time.Second)
	defer end()
	var late tries
	b.askSteadily(ctx, 200*time.Millisecond, func(began time.Time, err error) {
		if began.Sub(vanished) > noticed {
			late.add(err)
		}
	})
	return late.wrong(fmt.Sprintf("requests that came more than %v after a pod vanished", noticed))
}

// askDropping asks a pod that ends its connections with requests in its hands, one request after the other.
func askDropping(ctx context.Context, r *rig, length time.Duration) []string {
	b := newBystander(r.router.HTTP, "drop.test", true, false)
	defer b.CloseIdleConnections()
	var asked tries
	for began := time.Now(); time.Since(began) < length; _ = site.Pause(ctx, 20*time.Millisecond) {
		asked.add(b.ask(ctx))
	}
	return asked.wrong(fmt.Sprintf("requests to a pod that drops one of %d", dropEach))
}
