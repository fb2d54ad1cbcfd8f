package peer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is the CPU time of a process, all of its threads, the ended ones too.
type cpuTime struct {
	total        time.Duration // the scheduler's own count
	user, system time.Duration // the same as /proc divides and rounds it
}

func (t cpuTime) sub(u cpuTime) cpuTime {
	return cpuTime{total: t.total - u.total, user: t.user - u.user, system: t.system - u.system}
}

// userShare is the part of the time spent in user mode, 0..1.
func (t cpuTime) userShare() float64 {
	return float64(t.user) / float64(max(t.user+t.system, 1))
}

// parseStat reads utime and stime, fields 14 and 15 of /proc/PID/stat (proc(5)). Field 2, the command's
// name in parentheses, may hold blanks and parentheses: the last one ends it.
func parseStat(text string) (cpuTime, error) {
	_, after, ok := cutLast(text, ")")
	fields := strings.Fields(after) // begins with field 3
	if !ok || len(fields) < 13 {
		return cpuTime{}, errors.New("cannot read CPU time: stat has too few fields")
	}
	user, err1 := strconv.ParseUint(fields[11], 10, 63)
	system, err2 := strconv.ParseUint(fields[12], 10, 63)
	if err := errors.Join(err1, err2); err != nil {
		return cpuTime{}, fmt.Errorf("cannot read CPU time: %w", err)
	}
	return cpuTime{
		total: time.Duration(user+system) * tick, user: time.Duration(user) * tick, system: time.Duration(system) * tick,
	}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// readCore returns the time that core has not been idle since the machine started.
func readCore(core int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("cannot read the core's time: %w", err)
	}
	return parseCore(string(text), core)
}

// parseCore adds up the line cpuN of /proc/stat without idle and iowait (fields 4 and 5) and without guest
// time (9 and 10), which user and nice contain already (proc(5)).
func parseCore(text string, core int) (time.Duration, error) {
	name := fmt.Sprintf("cpu%d", core)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != name {
			continue
		}
		busy := uint64(0)
		for i, field := range fields[1:9] {
			n, err := strconv.ParseUint(field, 10, 63)
			if err != nil {
				return 0, fmt.Errorf("cannot read the core's time: %w", err)
			}
			if i != 3 && i != 4 {
				busy += n
			}
		}
		return time.Duration(busy) * tick, nil
	}
	return 0, fmt.Errorf("cannot read the core's time: no line %s", name)
}
