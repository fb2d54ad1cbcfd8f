package peer

import (
	"fmt"
	"os"

	"turnout/bench/site"
)

// readCPU returns the CPU time that process pid has used. The total comes from the process's CPU-time clock:
// it is what utime and stime of /proc/PID/stat are scaled to, but in nanoseconds instead of 10 ms.
func readCPU(pid int) (cpuTime, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return cpuTime{}, fmt.Errorf("cannot read CPU time: %w", err)
	}
	t, err := parseStat(string(text))
	if err != nil {
		return cpuTime{}, err
	}
	t.total, err = site.CPU(pid)
	return t, err
}
