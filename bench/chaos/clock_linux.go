package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// guardRole is the process that puts the clock right in the end.
const guardRole = "guard-of-the-clock"

// clockFaults set the wall clock of the machine, which has only one: namespaces of time move other clocks.
func clockFaults() []*fault {
	var list []*fault
	for _, shift := range []time.Duration{time.Hour, -time.Hour} {
		list = append(list, &fault{name: "clock jumps " + shift.String(), pods: 2, root: true, clock: true, begin: func(s *stage) {
			wall := time.Now().Add(shift)
			setClock(wall)
			s.notes.shift = time.Now().Round(0).Sub(wall.Add(-shift).Round(0))
		}, end: func(*stage) { setClock(time.Now().Round(0).Add(-shift)) }, want: bounds{served: 1}, present: func(s *stage) (string, bool) {
			off := s.notes.shift - shift
			return fmt.Sprintf("clock moved by %s", s.notes.shift.Round(time.Second)), off.Abs() < time.Minute
		}})
	}
	return list
}

func setClock(t time.Time) {
	ts := site.Must(unix.TimeToTimespec(t))
	site.Checkf(unix.ClockSettime(unix.CLOCK_REALTIME, &ts), "cannot set the clock")
}

// startGuard starts a process that puts the clock right when this one ends, however it ends. release waits for that.
func startGuard() (release func()) {
	cmd := site.Self(context.Background(), guardRole)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt is not for it
	in := site.Must(cmd.StdinPipe())
	site.Checkf(cmd.Start(), "cannot guard the clock")
	return func() {
		in.Close()
		site.Check(cmd.Wait())
	}
}

// guard waits for the end of its input and sets the wall clock to what it would be, by the clock that nobody sets.
func guard(in io.Reader) (err error) {
	defer site.Catch(&err)
	began := time.Now()
	_, _ = io.Copy(io.Discard, in) // an error is an end too
	right := began.Round(0).Add(time.Since(began))
	if time.Now().Round(0).Sub(right).Abs() >= time.Second {
		setClock(right)
	}
	return nil
}
