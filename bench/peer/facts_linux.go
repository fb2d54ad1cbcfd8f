package peer

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/report"
	"turnout/bench/site"
)

// facts are the results before there are any: the machine, without its name, and the versions of what is measured and measures.
func (h *harness) facts(ctx context.Context) *report.Results {
	r := &report.Results{Date: time.Now().UTC().Format(time.DateOnly), Rounds: h.rounds, Seconds: h.measure.Seconds(), Versions: make(map[string]string)}
	var memory unix.Sysinfo_t
	site.Check(unix.Sysinfo(&memory))
	r.Machine = report.Machine{
		Processor: firstOf(string(site.Must(os.ReadFile("/proc/cpuinfo"))), `(?m)^model name\s*: (.*)$`), Cores: runtime.NumCPU(),
		MemoryMiB: int(memory.Totalram * uint64(memory.Unit) >> 20), Kernel: firstOf(string(site.Must(os.ReadFile("/proc/sys/kernel/osrelease"))), `^(\d+\.\d+)`),
	}
	version := func(name, form, program string, args ...string) {
		path, err := find(program, name)
		if err != nil {
			return
		}
		out, _ := exec.CommandContext(ctx, path, args...).CombinedOutput() // some say it and fail
		r.Versions[name] = firstOf(string(out), form)
	}
	r.Versions["go"] = strings.TrimPrefix(runtime.Version(), "go")
	version("turnout", `^turnout (\S+)|^(\S+)`, h.turnout, "version")
	version("haproxy", `version (\d[\d.]*)`, h.haproxy, "-v")
	version("nginx", `nginx/(\S+)`, "nginx", "-v")
	version("h2load", `nghttp2/(\S+)`, "h2load", "--version")
	return r
}

// firstOf is what a group of a form that matched found in text; "unknown" if none did.
func firstOf(text, form string) string {
	if m := regexp.MustCompile(form).FindStringSubmatch(text); m != nil {
		for _, group := range m[1:] {
			if group != "" {
				return group
			}
		}
	}
	return "unknown"
}
