package chaos

import (
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
)

// networkFaults lose packets.
func networkFaults() []*fault {
	return []*fault{
		vanishing("vanishes", false), vanishing("vanishes, HTTP/2", true),
		{name: "30 % lost, pods", pods: 2, root: true, lasts: 6 * time.Second, begin: func(s *stage) {
			lose(s.pods[0].Addr().Addr(), 0.3)
			lose(s.pods[1].Addr().Addr(), 0.3)
		}, end: found, present: lost, want: bounds{allowed: []string{"502", "503", "504"}, served: 0.9, slowest: patience, recovers: 12 * time.Second}},
		{name: "30 % lost, clients", pods: 1, root: true, lasts: 6 * time.Second, begin: func(*stage) {
			lose(routeClients.addr(), 0.3)
		}, end: found, present: lost, want: bounds{served: 1, slowest: patience, recovers: 12 * time.Second}},
		{name: "clients vanish", pods: 1, root: true, begin: clientsVanish, end: clientsGone, present: lost, want: bounds{served: 1, check: givenUp}},
	}
}

// vanishing loses all packets of a pod.
func vanishing(name string, http2 bool) *fault {
	return &fault{name: name, http2: http2, pods: 2, root: true, lasts: 8 * time.Second, timeout: serverTimeout, begin: func(s *stage) {
		lose(s.pods[0].Addr().Addr(), 1)
	}, end: found, present: lost, want: bounds{allowed: []string{"504"}, served: 0.5, slowest: serverTimeout + 2*connectTimeout + usual, returns: 25 * time.Second, check: soonOut}}
}

// iptables changes the rules of this network namespace.
func iptables(args ...string) string {
	out, err := exec.Command("iptables", append([]string{"-w"}, args...)...).CombinedOutput()
	site.Checkf(err, "cannot run iptables %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// lose drops packets from and to an address, each with so much probability.
func lose(ip netip.Addr, probability float64) {
	for _, side := range []string{"-s", "-d"} {
		iptables("-A", "INPUT", side, ip.String(), "-m", "statistic", "--mode", "random",
			"--probability", strconv.FormatFloat(probability, 'f', 2, 64), "-j", "DROP")
	}
}

// found lets all packets pass again, and notes how many did not.
func found(s *stage) {
	defer iptables("-F", "INPUT")
	for line := range strings.Lines(iptables("-L", "INPUT", "-v", "-x", "-n")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" {
			s.notes.dropped += site.Must(strconv.ParseInt(f[0], 10, 64))
		}
	}
}

func lost(s *stage) (string, bool) {
	return fmt.Sprintf("%d packets dropped", s.notes.dropped), s.notes.dropped > 0
}

// soonOut: a pod that has vanished fails each connection that it had once, and is asked no more after that.
func soonOut(s *stage) error {
	const soon = 5 * time.Second
	failed := 0
	for _, one := range s.victims.since(s.began) {
		if one.outcome == fine {
			continue
		}
		if failed++; one.began.Sub(s.began) > soon {
			return fmt.Errorf("a request failed that began %s after the pod had vanished", short(one.began.Sub(s.began)))
		}
	}
	if most := 2 * 8; failed > most { // two for each client: it had as many connections as clients, and two loops
		return fmt.Errorf("%d requests failed, more than the %d that the pod may have had", failed, most)
	}
	return nil
}

// leaving is how many clients vanish within an answer.
const leaving = 100

// clientsVanish has clients begin to read a long answer, and then nothing comes from them any more.
func clientsVanish(s *stage) {
	for range leaving {
		c := s.thirdParty()
		_ = c.SetReadBuffer(smallBuffer) // so that all of them together leave the kernel its memory
		_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", longPath, s.fault.host())
		site.Checkf(err, "cannot ask")
		_, err = io.ReadFull(c, make([]byte, 1<<10))
		site.Checkf(err, "cannot read the beginning of an answer")
	}
	lose(thirdParty.addr(), 1)
}

// gaveUp is the metric that counts whom the router waits for no longer.
const gaveUp = `turnout_exchanges_total{reason="client-timeout"}`

// clientsGone waits until the router should have given up all that have vanished.
func clientsGone(s *stage) {
	s.Until(clientTimeout+5*usual, 50*time.Millisecond, func() bool {
		return s.router.Samples(s.Context)[gaveUp]-s.counts[0][gaveUp] >= leaving
	})
	undo(s)
	found(s)
}

// givenUp: the router waited for no client that had vanished longer than its own timeout.
func givenUp(s *stage) error {
	if n := s.delta(gaveUp); n != leaving {
		return fmt.Errorf("%.0f of %d clients that had vanished were given up", n, leaving)
	}
	return nil
}
