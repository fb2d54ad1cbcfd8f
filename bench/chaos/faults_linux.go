package chaos

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// notes are what faults write down while they last.
type notes struct {
	undo     func()       // what the beginning left to do at the end
	conns    []net.Conn   // closed at the end
	refusal  error        // of a connection to the pod
	dropped  int64        // packets
	answered atomic.Int64 // attackers that got an answer, which ends them
	limit    unix.Rlimit  // of descriptors as it was
	looks    int          // at the connections that wait to be accepted
	starved  int          // of these, how often there were some
	backlog  int          // the most that were seen
	waiting  [2]int       // bytes of stdout and stderr that nobody read
	writing  int          // threads that wait for a pipe
	problems float64      // of manifests
	state    string       // of the process
	shift    time.Duration
}

// faults are all of them in the order in which they are made.
func faults() []*fault {
	return slices.Concat(podFaults(), networkFaults(), clockFaults(), hostFaults())
}

// badPod has the first pod behave in one way while the fault lasts.
func badPod(how behaviour) (begin, end func(s *stage)) {
	return func(s *stage) { s.pods[0].does.Store(int32(how)) }, func(s *stage) { s.pods[0].does.Store(int32(answers)) }
}

// misbehaved says how many requests a pod treated so.
func misbehaved(verb string) func(s *stage) (string, bool) {
	return func(s *stage) (string, bool) { return fmt.Sprintf("%d %s", s.wrong(), verb), s.wrong() > 0 }
}

// ownFault: no more requests fail than the pod is to blame for.
func ownFault(s *stage) error {
	sum := summarize(s.victims.since(s.began))
	if failed := int64(sum.failed()); failed > s.wrong() {
		return fmt.Errorf("%d requests failed, and the pod failed only %d", failed, s.wrong())
	}
	return nil
}

// podFaults are those of pods that can be reached.
func podFaults() []*fault {
	list := []*fault{
		{name: "resets", pods: 2, present: misbehaved("resets"),
			want: bounds{allowed: []string{"502"}, served: 0.5, check: ownFault}},
		{name: "resets, POST", pods: 2, asks: asking{method: http.MethodPost}, present: misbehaved("resets"),
			want: bounds{allowed: []string{"502"}, served: 0.4, check: neverTwice}},
		{name: "hangs", pods: 2, timeout: serverTimeout, present: misbehaved("left without an answer"),
			want: bounds{allowed: []string{"504"}, served: 0.3, slowest: serverTimeout + usual, recovers: serverTimeout + usual, check: notEarly}},
		{name: "half answers", pods: 2, present: misbehaved("halves"),
			want: bounds{allowed: []string{wasCut, "502"}, served: 0.4, check: ownFault}},
		{name: "garbage", pods: 2, present: misbehaved("not HTTP"),
			want: bounds{allowed: []string{"502"}, served: 0.4, check: ownFault}},
		{name: "trickles", pods: 1, present: misbehaved("byte by byte"),
			want: bounds{served: 1, slowest: 4 * usual, recovers: 4 * usual}},
	}
	for i, how := range []behaviour{resets, resets, hangs, halves, babbles, trickles} {
		list[i].begin, list[i].end = badPod(how)
	}
	return append(list, &fault{name: "killed", pods: 2, lasts: 4 * time.Second, begin: func(s *stage) {
		s.pods[0].Down()
		c, err := net.DialTimeout("tcp4", s.pods[0].Addr().String(), time.Second)
		if s.notes.refusal = err; err == nil {
			c.Close()
		}
	}, end: func(s *stage) { s.pods[0].Up() }, present: func(s *stage) (string, bool) {
		return fmt.Sprintf("refused, %.0f retries", s.delta("turnout_retries_total")), errors.Is(s.notes.refusal, syscall.ECONNREFUSED)
	}, want: bounds{served: 1, returns: 20 * time.Second}})
}

// neverTwice: no pod was asked more often than clients asked.
func neverTwice(s *stage) error {
	if sent, asked := len(s.victims.all()), s.asked[1]-s.asked[0]; asked > int64(sent) {
		return fmt.Errorf("%d requests came to pods, and clients sent %d: some were repeated that must not be", asked, sent)
	}
	return ownFault(s)
}

// notEarly: nobody is given up before the server timeout.
func notEarly(s *stage) error {
	for _, one := range s.victims.since(s.began) {
		if one.outcome == "504" && one.took < serverTimeout-50*time.Millisecond {
			return fmt.Errorf("a 504 came after %s", short(one.took))
		}
	}
	return ownFault(s)
}
