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

func (t cpuTime) add(u cpuTime) cpuTime {
	return cpuTime{total: t.total + u.total, user: t.user + u.user, system: t.system + u.system}
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

// coreTime is what a core has done since the machine started.
type coreTime struct {
	busy  time.Duration // not idle, whatever had it
	steal time.Duration // of it: given to others by the hypervisor
	idle  time.Duration
}

func (t coreTime) sub(u coreTime) coreTime {
	return coreTime{busy: t.busy - u.busy, steal: t.steal - u.steal, idle: t.idle - u.idle}
}

func (t coreTime) add(u coreTime) coreTime {
	return coreTime{busy: t.busy + u.busy, steal: t.steal + u.steal, idle: t.idle + u.idle}
}

// parseCore reads the line cpuN of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and guest times, which user and nice
// contain already (proc(5)).
func parseCore(text string, core int) (t coreTime) {
	name := fmt.Sprintf("cpu%d", core)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != name {
			continue
		}
		for i, field := range fields[1:9] {
			switch n := ticks(field); i {
			case 3, 4:
				t.idle += n
			case 7:
				t.steal = n
				t.busy += n
			default:
				t.busy += n
			}
		}
		return t
	}
	site.Stopf("cannot read the core's time: no line %s", name)
	return t
}

// reading is what the kernel has counted at one moment, or between two.
type reading struct {
	proxy cpuTime
	self  time.Duration // of this process and the client's, if it has one of its own
	core  coreTime      // of the proxy
	load  coreTime      // of client and backend
}

func (r reading) sub(u reading) reading {
	return reading{proxy: r.proxy.sub(u.proxy), self: r.self - u.self, core: r.core.sub(u.core), load: r.load.sub(u.load)}
}

func (r reading) add(u reading) reading {
	return reading{proxy: r.proxy.add(u.proxy), self: r.self + u.self, core: r.core.add(u.core), load: r.load.add(u.load)}
}

// read counts the CPU time of the client's process as this process's own; 0 = there is none.
func (h *harness) read(p *proxy, client int) reading {
	stat := string(site.Must(os.ReadFile("/proc/stat")))
	r := reading{proxy: readCPU(p.PID()), self: site.CPU(os.Getpid()), core: parseCore(stat, h.proxyCore), load: parseCore(stat, h.loadCore)}
	if client != 0 {
		r.self += site.CPU(client)
	}
	return r
}
