package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
)

// multiplex is how an HTTP/2 client spreads its requests. The zero value means HTTP/1.1.
type multiplex struct {
	conns   int // connections
	streams int // requests at a time on each
}

func (m multiplex) String() string { return fmt.Sprintf("%dx%d", m.conns, m.streams) }

// clientMargin is how much longer the client runs than the measured part, so that its start and its end fall
// outside.
const clientMargin = 500 * time.Millisecond

// driveH2 lets h2load ask p over HTTP/2 while the rig is the backend. client becomes its process.
func (h *harness) driveH2(ctx context.Context, rig *load.Rig, p *proxy, m multiplex, span load.Span, rate float64, client *int) (res load.Result, err error) {
	defer site.Catch(&err)
	if h.h2load == "" {
		site.Stopf("cannot find h2load, install Debian's nghttp2-client")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	length := span.Warmup + span.Measure + clientMargin
	args := []string{
		"-c", strconv.Itoa(m.conns), "-m", strconv.Itoa(m.streams), "-t", "1", "-D", strconv.FormatInt(length.Milliseconds(), 10) + "ms",
		"--npn-list=h2", "--groups=X25519", "--tls13-ciphers=TLS_AES_128_GCM_SHA256",
		"--connect-to=" + p.addr.String(), "https://" + net.JoinHostPort(load.Host(0), strconv.Itoa(int(p.addr.Port()))) + "/items/0",
	}
	log := ""
	if rate > 0 {
		dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
		defer func() { _ = os.RemoveAll(dir) }()
		log = filepath.Join(dir, "requests")
		args = append([]string{"--log-file=" + log, fmt.Sprintf("--rps=%.1f", rate/float64(m.conns))}, args...)
	}
	cmd := exec.CommandContext(ctx, h.h2load, args...)
	process := site.StartProcess("h2load", cmd, h.loadCore, nil)
	*client = process.PID()
	res, err = rig.Serve(ctx, span, process.Exited())
	cancel()
	<-process.Exited()
	if err == nil && process.ExitCode() != 0 {
		err = errors.New("cannot trust h2load")
	}
	if err != nil {
		return res, fmt.Errorf("%w\nh2load said: %s", err, process.Tail())
	}
	if log != "" {
		res.Latency = readLog(string(site.Must(os.ReadFile(log))), span.Warmup)
	}
	return readH2load(res, process.Tail())
}

// readLog reads the log of h2load: when each request began, its status, and how long it took, in microseconds. Those that began within
// the warm-up are left out.
func readLog(text string, warmup time.Duration) site.Latency {
	var times []time.Duration
	first := int64(-1)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			site.Stopf("cannot read the log of h2load: %q", line)
		}
		began, took := site.Must(strconv.ParseInt(fields[0], 10, 64)), site.Must(strconv.ParseInt(fields[2], 10, 64))
		if first < 0 {
			first = began
		}
		if began-first >= warmup.Microseconds() {
			times = append(times, time.Duration(took)*time.Microsecond)
		}
	}
	return site.LatencyOf(times)
}

// readH2load adds to res what h2load counted as failed. It is an error if HTTP/2 was not spoken.
func readH2load(res load.Result, text string) (load.Result, error) {
	if !regexp.MustCompile(`(?m)^Application protocol: h2$`).MatchString(text) {
		return res, fmt.Errorf("cannot compare: HTTP/2 was not spoken\nh2load said: %s", text)
	}
	return countH2load(res, text)
}

// countH2load adds to res what h2load counted as failed.
func countH2load(res load.Result, text string) (load.Result, error) {
	for _, form := range []string{
		`(?m)^requests: .* (\d+) failed, (\d+) errored, (\d+) timeout$`,
		`(?m)^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`,
	} {
		m := regexp.MustCompile(form).FindStringSubmatch(text)
		if m == nil {
			return res, fmt.Errorf("cannot read what h2load counted: %s", text)
		}
		for _, digits := range m[1:] {
			n, err := strconv.ParseUint(digits, 10, 64)
			if err != nil {
				return res, fmt.Errorf("cannot read what h2load counted: %w", err)
			}
			res.Failures += n
		}
	}
	if res.Failures > 0 {
		res.First = errors.New("h2load counted failed requests")
	}
	return res, nil
}
