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
	Args      []string // more arguments of turnout run
	Env       []string // more of its environment, NAME=value
	Alone     bool     // it runs on Core and nowhere else, and so has one event loop
	Core      int      // RouterCore unless it is set; without Alone it has no meaning
	Dir       string   // folder of the manifests, which the caller makes and removes; "" = one of its own
	// Connect gives cmd its output and error output, as files, and calls line with each line that comes; nil = the site reads
	// both, see Tail.
	Connect func(cmd *exec.Cmd, line func([]byte)) error
}

// Router is a running router. Stop must be called.
type Router struct {
	*Process
	HTTP, HTTPS, Admin string // host:port

	dir string
	own bool // the folder
}

// startPatience bounds the time until a router serves.
const startPatience = 90 * time.Second

// Start starts a router and returns when it serves the manifests. The router ends with ctx at the latest.
func Start(ctx context.Context, c Config) (*Router, error) {
	r := &Router{dir: c.Dir, own: c.Dir == ""}
	if r.own {
		var err error
		if r.dir, err = os.MkdirTemp("", "turnout-site-"); err != nil {
			return nil, fmt.Errorf("cannot make a folder for manifests: %w", err)
		}
	}
	if err := r.start(ctx, c); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// remove removes the manifests, unless they are the caller's.
func (r *Router) remove() {
	if r.own {
		_ = os.RemoveAll(r.dir)
	}
}

func (r *Router) start(ctx context.Context, c Config) error {
	if err := r.Write("site.yaml", c.Manifests); err != nil {
		return err
	}
	args := append([]string{"run", "--manifests", r.dir, "--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, c.Args...)
	cmd := exec.CommandContext(ctx, c.Program, args...)
	cmd.Env = append(os.Environ(), c.Env...)
	core := AnyCore
	if c.Alone {
		core = c.Core
	}
	var l listener
	ready := make(chan struct{})
	line := func(text []byte) { l.read(text, ready) }
	if c.Connect != nil {
		if err := c.Connect(cmd, line); err != nil {
			return err
		}
	}
	process, err := startProcess("the router", cmd, core, line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := process.await(ctx, ready); err != nil {
		process.Kill()
		return err
	}
	r.Process, r.HTTP, r.HTTPS, r.Admin = process, l.HTTP, l.HTTPS, l.Admin
	return nil
}

// listener reads the log until the router serves.
type listener struct {
	HTTP, HTTPS, Admin string
	serves             bool
}

func (l *listener) read(line []byte, ready chan<- struct{}) {
	var entry struct{ Msg, HTTP, HTTPS, Admin string }
	if l.serves || json.Unmarshal(line, &entry) != nil {
		return
	}
	switch entry.Msg {
	case "listening":
		l.HTTP, l.HTTPS, l.Admin = entry.HTTP, entry.HTTPS, entry.Admin
	case "ready":
		l.serves = true
		close(ready)
	}
}

// Write writes a file of manifests, instead of an older one of that name, which the router sees as a whole or not at all. It
// serves them soon after. The ones it started with are site.yaml.
func (r *Router) Write(name, manifests string) error {
	hidden := filepath.Join(r.dir, "."+name)
	if err := os.WriteFile(hidden, []byte(manifests), 0o600); err != nil {
		return fmt.Errorf("cannot write manifests: %w", err)
	}
	if err := os.Rename(hidden, filepath.Join(r.dir, name)); err != nil {
		return fmt.Errorf("cannot write manifests: %w", err)
	}
	return nil
}

// Stop asks the router to end, waits until it is gone, and removes its manifests, unless they are in Config.Dir.
func (r *Router) Stop() {
	r.Process.Stop()
	r.remove()
}

// Metric is one of Metrics.
func (r *Router) Metric(ctx context.Context, name string) (float64, error) {
	values, err := r.Metrics(ctx, name)
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

// Metrics asks the router once and adds up the samples of each metric, whatever their labels; 0 without any. Those of the Go
// runtime are among them, such as go_goroutines.
func (r *Router) Metrics(ctx context.Context, names ...string) ([]float64, error) {
	samples, err := r.Samples(ctx)
	sums := make([]float64, len(names))
	for sample, n := range samples {
		family, _, _ := strings.Cut(sample, "{")
		if i := slices.Index(names, family); i >= 0 {
			sums[i] += n
		}
	}
	return sums, err
}

// Samples asks the router for all metrics, by name and labels as they are written: name{label="value"}.
func (r *Router) Samples(ctx context.Context) (map[string]float64, error) {
	status, text, err := testhttp.Get(ctx, nil, "http://"+r.Admin+"/metrics", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask for metrics: %w", err)
	}
	all := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ') // labels may hold blanks
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if all[line[:at]], err = strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err != nil {
			return nil, fmt.Errorf("cannot read metrics: %w", err)
		}
	}
	return all, nil
}
