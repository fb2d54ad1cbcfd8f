package site

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/internal/testkit/testhttp"
)

// Config says which router to start. Only Program is required.
type Config struct {
	Program   string   // path of turnout
	Manifests string   // YAML documents that are served from the start
	Cluster   string   // kubeconfig of a cluster that is read instead; "" = none is
	Under     []string // a program with arguments that runs it, such as a tracer; none = it runs by itself
	Args      []string // more arguments of turnout run
	Env       []string // more of its environment, NAME=value
	Alone     bool     // it runs on Core and nowhere else, and so has one event loop
	Core      int      // RouterCore unless it is set; without Alone it has no meaning
	Parent    string   // folder in which the folder of manifests is made; "" = the system's for what is temporary
	TwoPipes  bool     // output and error output are apart, in pipes of 4 KiB
}

// Router is a running router. Stop must be called.
type Router struct {
	*Process
	Dir                string // folder of the manifests
	HTTP, HTTPS, Admin string // host:port
}

// startPatience bounds the time until a router serves.
const startPatience = 90 * time.Second

// Start starts a router and returns when it serves the manifests. The router ends with ctx at the latest.
func Start(ctx context.Context, c Config) *Router {
	r := &Router{Dir: Must(os.MkdirTemp(c.Parent, "turnout-site-"))}
	if err := Try(func() { r.start(ctx, c) }); err != nil {
		_ = os.RemoveAll(r.Dir)
		Check(err)
	}
	return r
}

func (r *Router) start(ctx context.Context, c Config) {
	r.Write("site.yaml", c.Manifests)
	from := []string{"--manifests", r.Dir}
	if c.Cluster != "" {
		from = []string{"--kubeconfig", c.Cluster}
	}
	args := append([]string{"run", from[0], from[1], "--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, c.Args...)
	command := append(append(slices.Clone(c.Under), c.Program), args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	core := AnyCore
	if c.Alone {
		core = c.Core
	}
	r.Process = startProcess("the router", cmd, core, r.readLine, c.TwoPipes)
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := Try(func() { r.Await(ctx) }); err != nil {
		r.Kill()
		Check(err)
	}
}

// readLine reads a line of the log, and returns true when it says that the router serves.
func (r *Router) readLine(line []byte) bool {
	var entry struct{ Msg, HTTP, HTTPS, Admin string }
	if json.Unmarshal(line, &entry) != nil {
		return false
	}
	if entry.Msg == "listening" {
		r.HTTP, r.HTTPS, r.Admin = entry.HTTP, entry.HTTPS, entry.Admin
	}
	return entry.Msg == "ready"
}

// Write writes a file of manifests, instead of an older one of that name, which the router sees as a whole or not at all. It
// serves them soon after. The ones it started with are site.yaml.
func (r *Router) Write(name, manifests string) {
	hidden := filepath.Join(r.Dir, "."+name)
	Checkf(os.WriteFile(hidden, []byte(manifests), 0o600), "cannot write manifests")
	Checkf(os.Rename(hidden, filepath.Join(r.Dir, name)), "cannot write manifests")
}

// Stop asks the router to end, waits until it is gone, and removes its manifests. It may be gone already.
func (r *Router) Stop() {
	r.Process.Stop()
	_ = os.RemoveAll(r.Dir)
}

// Metric asks the router and adds up the samples of one metric, whatever their labels; 0 without any. Those of the Go runtime are
// among them, such as go_goroutines.
func (r *Router) Metric(ctx context.Context, name string) (sum float64) {
	for sample, n := range r.Samples(ctx) {
		if family, _, _ := strings.Cut(sample, "{"); family == name {
			sum += n
		}
	}
	return sum
}

// Samples asks the router for all metrics, by name and labels as they are written: name{label="value"}.
func (r *Router) Samples(ctx context.Context) map[string]float64 {
	status, text, err := testhttp.Get(ctx, nil, "http://"+r.Admin+"/metrics", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	Checkf(err, "cannot ask for metrics")
	all := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ') // labels may hold blanks
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		all[line[:at]] = Must(strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64))
	}
	return all
}
