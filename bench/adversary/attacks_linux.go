package adversary

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

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
	after func(ctx context.Context, r *rig, before int) (wrong []string)
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
	{name: "loop", attackers: crowd(20, askLoop("loop.test")), after: descriptorsGone},
	{name: "admin-connections", attackers: crowd(300, idleAdmin), meanwhile: probesAnswer},
	{name: "admin-readers", attackers: crowd(250, deafReader("/routes")), meanwhile: probesAnswer},
}

// attackersRole is the process of the attackers.
const attackersRole = "attackers"

// beAttackers makes an attack until ctx is done. The arguments are its name and the addresses of HTTP, TLS and the admin port.
func beAttackers(ctx context.Context, args []string) error {
	for i := range attacks {
		if a := &attacks[i]; len(args) == 4 && a.name == args[0] {
			if a.attackers != nil {
				a.attackers(ctx, &targets{HTTP: args[1], HTTPS: args[2], Admin: args[3]})
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
		var all sync.WaitGroup
		defer all.Wait()
		for range n {
			all.Go(func() {
				for ctx.Err() == nil {
					act(ctx, t)
					pause(ctx, 20*time.Millisecond)
				}
			})
		}
	}
}

// pause waits, unless ctx is done before.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// held keeps a connection open until the other side ends it or ctx is done, and reads nothing.
func held(ctx context.Context, c net.Conn) {
	defer c.Close()
	var b [1]byte
	for ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond)
		_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Write(b[:0]); err != nil {
			return
		}
	}
}

// get asks for a page on a connection of its own and returns the status.
func get(ctx context.Context, url, host string, patience time.Duration) (int, error) {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	status, _, err := testhttp.Get(ctx, &http.Transport{DisableKeepAlives: true}, url, host)
	return status, err
}

// patienceForSockets is how long after an attack the router may have descriptors that belong to it.
const patienceForSockets = 15 * time.Second

// leftOver is how many descriptors may be more than before an attack: connections to pods that are kept, those of bystanders that end.
const leftOver = 40

// descriptorsGone waits for the descriptors that an attack left.
func descriptorsGone(ctx context.Context, r *rig, before int) []string {
	for began := time.Now(); ; pause(ctx, 100*time.Millisecond) {
		n, err := r.router.Descriptors()
		switch {
		case err != nil:
			return []string{err.Error()}
		case n <= before+leftOver:
			return nil
		case time.Since(began) > patienceForSockets || ctx.Err() != nil:
			return []string{fmt.Sprintf("%v after the attack the router has %d descriptors, %d before it", patienceForSockets, n, before)}
		}
	}
}

// probesAnswer asks for health as the kubelet does.
func probesAnswer(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	failed, asked, first := 0, 0, ""
	for began := time.Now(); time.Since(began) < length; pause(ctx, 100*time.Millisecond) {
		for _, path := range []string{"/healthz", "/healthz/ready"} {
			asked++
			if status, err := get(ctx, "http://"+r.router.Admin+path, "", time.Second); err != nil || status != http.StatusOK {
				if failed++; first == "" {
					first = fmt.Sprintf("%s: status %d, %v", path, status, err)
				}
			}
		}
	}
	if failed > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d probes failed, first: %s", failed, asked, first))
	}
	return wrong
}

// freezePod has a pod vanish under load. Requests that came before may fail after the server timeout of 2 s; a while later
// none does any more.
func freezePod(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	const noticed = 10 * time.Second
	b := newBystander(r.router.HTTP, "freeze.test", true, false)
	defer b.client.CloseIdleConnections()
	if err := b.ask(ctx); err != nil {
		return []string{fmt.Sprintf("before the pod vanished: %v", err)}
	}
	r.frozen.freeze()
	var mu sync.Mutex
	var asked sync.WaitGroup
	failed, late, first := 0, 0, ""
	began := time.Now()
	for ; time.Since(began) < length-3*time.Second; pause(ctx, 200*time.Millisecond) {
		asked.Go(func() {
			when := time.Since(began)
			err := b.ask(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				return
			}
			if failed++; when > noticed {
				if late++; first == "" {
					first = err.Error()
				}
			}
		})
	}
	asked.Wait()
	r.frozen.thaw()
	if late > 0 {
		wrong = append(wrong, fmt.Sprintf("%d requests failed that came more than %v after a pod vanished (%d in all), first: %s", late, noticed, failed, first))
	}
	return wrong
}

// askDropping asks a pod that ends its connections with requests in its hands, one request after the other.
func askDropping(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	b := newBystander(r.router.HTTP, "drop.test", true, false)
	defer b.client.CloseIdleConnections()
	asked, failed, first := 0, 0, ""
	for began := time.Now(); time.Since(began) < length; pause(ctx, 20*time.Millisecond) {
		asked++
		if err := b.ask(ctx); err != nil {
			if failed++; first == "" {
				first = err.Error()
			}
		}
	}
	if failed > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d requests to a pod that drops one of %d failed, first: %s", failed, asked, dropEach, first))
	}
	return wrong
}
