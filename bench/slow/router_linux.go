package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// vitals is what the router's process uses.
type vitals struct {
	cpu      time.Duration // user and system, since its start
	resident int           // bytes
}

// clockTick is the unit of the times in /proc: USER_HZ, 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// vitals reads /proc.
func (s *site) vitals() (v vitals, err error) {
	dir := fmt.Sprintf("/proc/%d/", s.router.Process.Pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return v, fmt.Errorf("cannot see the router's process: %w", err)
	}
	// The name in parentheses may hold anything; the state follows it, utime and stime are the 12th and 13th after that.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 22 {
		return v, fmt.Errorf("cannot read %q", stat)
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	pages, err3 := strconv.Atoi(f[21])
	if err := errors.Join(err1, err2, err3); err != nil {
		return v, fmt.Errorf("cannot read %q: %w", stat, err)
	}
	return vitals{time.Duration(user+system) * clockTick, pages * os.Getpagesize()}, nil
}

// open asks the router how many client connections it has.
func (s *site) open(ctx context.Context) (int, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("cannot make request: %w", err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, fmt.Errorf("cannot ask for metrics: %w", err)
	}
	defer a.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(a.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && strings.HasPrefix(name, "turnout_connections_open{") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read metrics: %w", err)
			}
			sum += n
		}
	}
	return int(sum), lines.Err() //nolint:wrapcheck // of a body in memory
}

// until asks every second whether done, for as long as patience.
func until(ctx context.Context, patience time.Duration, done func() (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}
