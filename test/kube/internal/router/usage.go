package router

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, the same on all Linux systems.
const tick = 10 * time.Millisecond

// Resident returns the bytes of memory that the process has resident.
func (r *Router) Resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of the router: %w", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of the router: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// CPU returns the processor time the process has used, user and system.
func (r *Router) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot read the processor time of the router: %w", err)
	}
	// The name in parentheses may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read the processor time of the router: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
