package chaos

import (
	"errors"
	"fmt"
	"io"
	"net"
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
		{name: "30 % lost, pods", pods: 2, root: true, lasts: 6 * time.Second, begin: func(s *stage) error {
			return errors.Join(s.lose(s.pods[0].addr.Addr(), 0.3), s.lose(s.pods[1].addr.Addr(), 0.3))
		}, end: found, present: lost, want: bounds{allowed: []string{"502", "503", "504"}, served: 0.9, slowest: patience, recovers: 12 * time.Second}},
		{name: "30 % lost, clients", pods: 1, root: true, lasts: 6 * time.Second, begin: func(s *stage) error {
			return s.lose(routeClients.addr(), 0.3)
		}, end: found, present: lost, want: bounds{served: 1, slowest: patience, recovers: 12 * time.Second}},
		{name: "clients vanish", pods: 1, root: true, begin: clientsVanish, end: clientsGone, present: lost, want: bounds{served: 1, check: givenUp}},
	}
}

// vanishing loses all packets of a pod.
func vanishing(name string, http2 bool) *fault {
	return &fault{name: name, http2: http2, pods: 2, root: true, lasts: 8 * time.Second, timeout: serverTimeout, begin: func(s *stage) error {
		return s.lose(s.pods[0].addr.Addr(), 1)
	}, end: found, present: lost, want: bounds{allowed: []string{"504"}, served: 0.5, slowest: serverTimeout + 2*connectTimeout + usual, returns: 25 * time.Second, check: soonOut}}
}

// iptables changes the rules of this network namespace.
func iptables(args ...string) ([]byte, error) {
	out, err := exec.Command("iptables", append([]string{"-w"}, args...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot run iptables %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// lose drops packets from and to an address, each with so much probability.
func (s *stage) lose(ip netip.Addr, probability float64) error {
	chance := []string{"-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(probability, 'f', 2, 64)}
	var errs []error
	for _, side := range []string{"-s", "-d"} {
		rule := append([]string{"-A", "INPUT", side, ip.String()}, chance...)
		_, err := iptables(append(rule, "-j", "DROP")...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// found lets all packets pass again, and notes how many did not.
func found(s *stage) error {
	out, err := iptables("-L", "INPUT", "-v", "-x", "-n")
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[2] != "DROP" {
			continue
		}
		n, wrong := strconv.ParseInt(f[0], 10, 64)
		s.notes.dropped += n
		err = errors.Join(err, wrong)
	}
	_, flushed := iptables("-F", "INPUT")
	return errors.Join(err, flushed)
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
func clientsVanish(s *stage) error {
	var conns []net.Conn
	s.notes.undo = func() {
		for _, c := range conns {
			c.Close()
		}
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(thirdParty.addr(), 0)), Timeout: patience}
	for range leaving {
		c, err := d.Dial("tcp4", s.router.HTTP)
		if err != nil {
			return fmt.Errorf("cannot connect: %w", err)
		}
		conns = append(conns, c)
		_ = c.(*net.TCPConn).SetReadBuffer(smallBuffer) // so that all of them together leave the kernel its memory
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", longPath, s.fault.host()); err != nil {
			return fmt.Errorf("cannot ask: %w", err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1<<10)); err != nil {
			return fmt.Errorf("cannot read the beginning of an answer: %w", err)
		}
	}
	return s.lose(thirdParty.addr(), 1)
}

// gaveUp is the metric that counts whom the router waits for no longer.
const gaveUp = `turnout_exchanges_total{reason="client-timeout"}`

// clientsGone waits until the router should have given up all that have vanished.
func clientsGone(s *stage) error {
	s.Until(clientTimeout+5*usual, 50*time.Millisecond, func() bool {
		return site.Must(s.router.Samples(s.Context))[gaveUp]-s.counts[0][gaveUp] >= leaving
	})
	_ = undo(s)
	return found(s)
}

// givenUp: the router waited for no client that had vanished longer than its own timeout.
func givenUp(s *stage) error {
	if n := s.delta(gaveUp); n != leaving {
		return fmt.Errorf("%.0f of %d clients that had vanished were given up", n, leaving)
	}
	return nil
}
