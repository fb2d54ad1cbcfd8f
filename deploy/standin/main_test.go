package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// here are places below a folder of the test. Whoever waits for a signal gets it by closing stop.
func here(t *testing.T) (at places, stop chan os.Signal) {
	t.Helper()
	dir := t.TempDir()
	stop = make(chan os.Signal, 1)
	at = places{
		config: dir + "/config", copied: dir + "/copied", run: dir, log: dir + "/log.sock", patience: 20 * time.Second,
		until:    func() <-chan os.Signal { return stop },
		hostname: func() (string, error) { return "router-default-abc.example.com", nil },
		now:      func() time.Time { return time.Date(2026, 11, 3, 4, 5, 6, 789_000_000, time.UTC) },
	}
	return at, stop
}

// known are the commands of the operator's Deployment, written out once more: what
// programs of its pods are called with.
var known = [][]string{
	{"/bin/bash", "-c", "cp -R -p /var/lib/haproxy/* /mnt/config/"},
	{"/bin/sh", "-c", "echo show version | socat - /var/lib/haproxy/run/admin.sock"},
	{"/bin/sh", "-c", "echo show version | socat - /var/lib/haproxy/run/haproxy.sock"},
	{"/var/lib/haproxy/start-haproxy", "-W", "-db", "-S", "/var/lib/haproxy/run/admin.sock,mode,600", "-f", "/var/lib/haproxy/conf/haproxy.config"},
	{"/sbin/rsyslogd", "-n", "-i", "/tmp/rsyslog.pid", "-f", "/etc/rsyslog/rsyslog.conf"},
}

func base(argv []string) string { return argv[0][strings.LastIndexByte(argv[0], '/')+1:] }

func TestKnownTexts(t *testing.T) {
	for _, argv := range known {
		if _, ok := find(base(argv), argv); !ok {
			t.Errorf("%q is not known", argv)
		}
	}
}

// TestNearMisses: one octet more, less or other, an argument more or less, another order, another program: 127.
func TestNearMisses(t *testing.T) {
	refused := func(argv ...string) {
		t.Helper()
		at, _ := here(t)
		var stdout, stderr bytes.Buffer
		if status := command(argv, at, &stdout, &stderr); status != 127 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 ||
			!strings.Contains(stderr.String(), "Turnout's stand-in for") {
			t.Errorf("%q: status %d, %q, %q", argv, status, &stdout, &stderr)
		}
	}
	for _, argv := range known {
		refused(argv[0])
		refused(append(slices.Clone(argv), "")...)
		refused(append(slices.Clone(argv), argv[1])...)
		refused(argv[:len(argv)-1]...)
		refused(append([]string{"/bin/false"}, argv[1:]...)...)
		for i := 1; i < len(argv); i++ {
			for j := range len(argv[i]) {
				for _, changed := range []string{
					argv[i][:j] + argv[i][j+1:], argv[i][:j] + "x" + argv[i][j:], argv[i][:j] + " " + argv[i][j:],
					argv[i][:j] + string(argv[i][j]^0x20) + argv[i][j+1:],
				} {
					other := slices.Clone(argv)
					other[i] = changed
					if !slices.Equal(other, argv) && !slices.ContainsFunc(known, func(k []string) bool { return slices.Equal(k[1:], other[1:]) }) {
						refused(other...)
					}
				}
			}
		}
	}
	refused()
	refused("")
	refused("/bin/sh", "-c", "id")
	refused("/bin/bash", "-i")
	refused("/bin/bash", "-c", "cp -R -p /var/lib/haproxy/* /mnt/config/; id")
	refused("/bin/bash", "-lc", "cp -R -p /var/lib/haproxy/* /mnt/config/")
	refused("/bin/sh", "-c", "echo show version | socat - /var/lib/haproxy/run/other.sock")
	refused("/bin/sh", "-c", "echo show stat | socat - /var/lib/haproxy/run/haproxy.sock")
	refused("/sbin/rsyslogd", "-v")
	refused("/var/lib/haproxy/start-haproxy", "-v")
}

// TestRefusalIsBounded: whatever was asked for, a line of it is printed.
func TestRefusalIsBounded(t *testing.T) {
	at, _ := here(t)
	var stderr bytes.Buffer
	command([]string{"/bin/sh", "-c", strings.Repeat("\n\x00", 1<<20)}, at, nil, &stderr)
	if n := stderr.Len(); n > 5*maxShown+500 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%d octets: %.100q", n, stderr.String())
	}
}

func FuzzCommand(f *testing.F) {
	for _, argv := range known {
		f.Add(argv[0], strings.Join(argv[1:], "\x00"))
	}
	f.Add("/bin/sh", "-c\x00id")
	f.Fuzz(func(t *testing.T, program, args string) {
		argv := []string{program}
		if args != "" {
			argv = append(argv, strings.Split(args, "\x00")...)
		}
		_, ok := find(base(argv), argv)
		want := slices.ContainsFunc(known, func(k []string) bool {
			name := base(k)
			return slices.Equal(k[1:], argv[1:]) && (base(argv) == name || name == "sh" && base(argv) == "bash" || name == "bash" && base(argv) == "sh")
		})
		if ok != want {
			t.Errorf("%q: known %v, want %v", argv, ok, want)
		}
		if line := refusal(base(argv), argv); strings.ContainsAny(line, "\n\x00") {
			t.Errorf("%q: the refusal is %q", argv, line)
		}
	})
}

// TestImportsLittle: the sidecar stands in every pod and does nothing, so that it must not be large. The packages here
// bring memory with them before anything is done.
func TestImportsLittle(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(text))
	for _, heavy := range []string{"net", "encoding/json", "crypto/tls", "regexp"} { // fmt comes with runtime/debug
		if slices.Contains(packages, heavy) {
			t.Errorf("the program has the package %s", heavy)
		}
	}
	if len(packages) > 80 {
		t.Errorf("the program has %d packages", len(packages))
	}
}
