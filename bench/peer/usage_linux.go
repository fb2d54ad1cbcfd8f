package peer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
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

// readCPU returns the CPU time that process pid has used. The total comes from the process's CPU-time clock:
// it is what utime and stime of /proc/PID/stat are scaled to, but in nanoseconds instead of 10 ms.
func readCPU(pid int) cpuTime {
	t := parseStat(string(site.Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))))
	t.total = site.CPU(pid)
	return t
}

// parseStat reads utime and stime, fields 14 and 15 of /proc/PID/stat (proc(5)). Field 2, the command's
// name in parentheses, may hold blanks and parentheses: the last one ends it.
func parseStat(text string) cpuTime {
	at := strings.LastIndex(text, ")")
	fields := strings.Fields(text[at+1:]) // begins with field 3
	if at < 0 || len(fields) < 13 {
		site.Stopf("cannot read CPU time: stat has too few fields")
	}
	user, system := ticks(fields[11]), ticks(fields[12])
	return cpuTime{total: user + system, user: user, system: system}
}

func ticks(field string) time.Duration {
	n, err := strconv.ParseUint(field, 10, 63)
	site.Checkf(err, "cannot read a time")
	return time.Duration(n) * tick
}

// readCore returns the time that core has not been idle since the machine started.
func readCore(core int) time.Duration {
	return parseCore(string(site.Must(os.ReadFile("/proc/stat"))), core)
}

// parseCore adds up the line cpuN of /proc/stat without idle and iowait (fields 4 and 5) and without guest
// time (9 and 10), which user and nice contain already (proc(5)).
func parseCore(text string, core int) (busy time.Duration) {
	name := fmt.Sprintf("cpu%d", core)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != name {
			continue
		}
		for i, field := range fields[1:9] {
			if n := ticks(field); i != 3 && i != 4 {
				busy += n
			}
		}
		return busy
	}
	site.Stopf("cannot read the core's time: no line %s", name)
	return 0
}

// reading is what the kernel has counted at one moment.
type reading struct {
	proxy cpuTime
	self  time.Duration // of this process and the client's, if it has one of its own
	core  time.Duration // of the proxy, not idle
	cores time.Duration // the same of both cores
}

// read counts the CPU time of the client's process as this process's own; 0 = there is none.
func (h *harness) read(p *proxy, client int) reading {
	r := reading{proxy: readCPU(p.PID()), self: site.CPU(os.Getpid()), core: readCore(h.proxyCore)}
	r.cores = r.core + readCore(h.loadCore)
	if client != 0 {
		r.self += site.CPU(client)
	}
	return r
}
