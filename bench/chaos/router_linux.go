package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// router is the router's process. What it writes is read from pipes by readers that can be stopped.
type router struct {
	*site.Router
	manifests string // folder
	accessLog string // file
	out, err  *reader
}

// reader reads a pipe.
type reader struct {
	f    *os.File
	gate sync.Mutex // held while nobody reads
	read atomic.Int64
	mu   sync.Mutex
	tail []byte
	line func(text []byte)
}

// pipeSize is the memory of the log's pipe: few lines fill it.
const pipeSize = 4 << 10

// startReader makes a pipe and reads it. The file is its writing end.
func startReader(line func(text []byte)) (*reader, *os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	if _, err := unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, pipeSize); err != nil {
		return nil, nil, fmt.Errorf("cannot make a small pipe: %w", err)
	}
	r := &reader{f: from, line: line}
	go r.run()
	return r, to, nil
}

func (r *reader) run() {
	lines := bufio.NewReader(pausable{r})
	for {
		text, err := lines.ReadBytes('\n')
		r.mu.Lock()
		if r.tail = append(r.tail, text...); len(r.tail) > pipeSize {
			r.tail = r.tail[len(r.tail)-pipeSize:]
		}
		r.mu.Unlock()
		if r.line != nil {
			r.line(text)
		}
		if err != nil {
			return
		}
	}
}

// pausable reads while the gate is open.
type pausable struct{ r *reader }

func (p pausable) Read(b []byte) (int, error) {
	n, err := p.r.f.Read(b)
	p.r.gate.Lock()
	p.r.gate.Unlock() //nolint:staticcheck // it waits for its turn and does nothing with it
	p.r.read.Add(int64(n))
	return n, err
}

// last is the end of what was read.
func (r *reader) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(string(r.tail))
}

// waiting is how many bytes nobody has read.
func (r *reader) waiting() int {
	n := 0
	if raw, err := r.f.SyscallConn(); err == nil {
		err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil {
			return 0
		}
	}
	return n
}

// Times that the router is given, so that the suite need not wait for the usual ones.
const (
	headTimeout    = 2 * time.Second
	clientTimeout  = 3 * time.Second
	connectTimeout = 2 * time.Second
	serverTimeout  = time.Second // of routes whose fault is about it
	otherTimeout   = 10 * time.Second
)

// startRouter starts the router over dir and returns when it serves the manifests.
func startRouter(t *site.T, dir, manifests string) *router {
	r := &router{manifests: filepath.Join(dir, "manifests"), accessLog: filepath.Join(dir, "log", "access.log")}
	site.Check(errors.Join(os.MkdirAll(r.manifests, 0o755), os.MkdirAll(filepath.Dir(r.accessLog), 0o755)))
	var ends [2]*os.File
	defer func() {
		for _, f := range ends {
			f.Close() // the router has its own
		}
	}()
	r.Router = site.Must(site.Start(t.Context, site.Config{
		Program: t.Program, Dir: r.manifests, Manifests: manifests,
		Args: []string{
			"--slowloris-timeout", headTimeout.String(), "--default-client-timeout", clientTimeout.String(), "--default-connect-timeout", connectTimeout.String(),
			"--access-log", r.accessLog, "--syslog-address", "stdout", "--syslog-level", "info",
		},
		Connect: func(cmd *exec.Cmd, line func([]byte)) (err error) {
			if r.out, ends[0], err = startReader(nil); err == nil {
				r.err, ends[1], err = startReader(line)
			}
			cmd.Stdout, cmd.Stderr = ends[0], ends[1]
			return err
		},
	}))
	return r
}

// died is the error of a router that has ended.
func (r *router) died() error { return fmt.Errorf("%w: %s", r.Died(), r.err.last()) }

// stop ends the router as an orchestrator does and returns how long that took.
func (r *router) stop() time.Duration {
	began := time.Now()
	site.Check(r.Signal(syscall.SIGTERM))
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case <-r.Exited():
	case <-late.C:
		site.Check(errors.New("the router did not end 20 s after SIGTERM"))
	}
	if r.ExitCode() != 0 {
		site.Check(r.died())
	}
	return time.Since(began)
}

// vitals looks at the process.
func (s *suite) vitals() (v vitals) {
	v.goroutines = int(site.Must(s.router.Metric(s.Context, "go_goroutines")))
	v.descriptors, v.resident = site.Must(s.router.Descriptors()), site.Must(s.router.Resident())
	upstream, _, err := s.router.sockets()
	site.Check(err)
	v.upstream = upstream
	return v
}

// sockets counts, in the router's network namespace, connections to pods that a process holds, and connections to the
// router that wait to be accepted.
func (r *router) sockets() (upstream, backlog int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", r.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot count connections: %w", err)
	}
	_, port, _ := strings.Cut(r.HTTP, ":")
	own, err := strconv.Atoi(port)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the router's address %s: %w", r.HTTP, err)
	}
	for line := range strings.Lines(string(text)) {
		// sl local remote state tx:rx ... inode; addresses are hexadecimal and little endian
		f := strings.Fields(line)
		if len(f) < 10 || len(f[2]) < 8 {
			continue
		}
		const listening = "0A"
		switch {
		case f[2][4:8] == podNetwork && f[9] != "0":
			upstream++
		case f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", own)):
			_, waiting, _ := strings.Cut(f[4], ":")
			n, err := strconv.ParseInt(waiting, 16, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("cannot count connections: %w", err)
			}
			backlog += int(n)
		}
	}
	return upstream, backlog, nil
}

// podNetwork is 127.1.0.0/16 as /proc/net/tcp has it.
const podNetwork = "017F"
