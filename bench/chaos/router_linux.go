package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"turnout/bench/site"
)

// router is the router's process. What it writes is read from pipes by readers that can be stopped.
type router struct {
	*site.Router

	accessLog string // file
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
	r := &router{accessLog: filepath.Join(dir, "log", "access.log")}
	site.Check(os.MkdirAll(filepath.Dir(r.accessLog), 0o755))
	r.Router = t.Start(site.Config{
		Parent: dir, Manifests: manifests, TwoPipes: true,
		Args: []string{
			"--slowloris-timeout", headTimeout.String(), "--default-client-timeout", clientTimeout.String(), "--default-connect-timeout", connectTimeout.String(),
			"--access-log", r.accessLog, "--syslog-address", "stdout", "--syslog-level", "info",
		},
	})
	return r
}

// stop ends the router as an orchestrator does and returns how long that took.
func (r *router) stop() time.Duration {
	began := time.Now()
	r.Signal(syscall.SIGTERM)
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case <-r.Exited():
	case <-late.C:
		site.Check(errors.New("the router did not end 20 s after SIGTERM"))
	}
	if r.ExitCode() != 0 {
		site.Check(r.Died())
	}
	return time.Since(began)
}

// vitals looks at the process.
func (s *suite) vitals() (v vitals) {
	v.goroutines = int(s.router.Metric(s.Context, "go_goroutines"))
	v.descriptors, v.resident = len(s.router.Descriptors()), s.router.Resident()
	v.upstream, _ = s.router.sockets()
	return v
}

// sockets counts, in the router's network namespace, connections to pods that a process holds, and connections to the
// router that wait to be accepted.
func (r *router) sockets() (upstream, backlog int) {
	_, port, _ := strings.Cut(r.HTTP, ":")
	own := fmt.Sprintf(":%04X", site.Must(strconv.Atoi(port)))
	for line := range strings.Lines(r.Proc("net/tcp")) {
		// sl local remote state tx:rx ... inode; addresses are hexadecimal and little endian
		f := strings.Fields(line)
		if len(f) < 10 || len(f[2]) < 8 {
			continue
		}
		const listening = "0A"
		switch {
		case f[2][4:8] == podNetwork && f[9] != "0":
			upstream++
		case f[3] == listening && strings.HasSuffix(f[1], own):
			_, waiting, _ := strings.Cut(f[4], ":")
			backlog += int(site.Must(strconv.ParseInt(waiting, 16, 64)))
		}
	}
	return upstream, backlog
}

// podNetwork is 127.1.0.0/16 as /proc/net/tcp has it.
const podNetwork = "017F"
