package peer

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
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
	// The clock's number is that of clock_getcpuclockid(3): the complement of the process, then the kind of
	// time, 2 for the scheduler's.
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return cpuTime{}, fmt.Errorf("cannot read CPU clock of process %d: %w", pid, err)
	}
	t.total = time.Duration(ts.Nano())
	return t, nil
}
