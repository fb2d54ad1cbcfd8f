// Command standin is the one program behind every path, other than the router's, that
// the pods of OpenShift's ingress operator execute in the router's image:
//
//	/bin/bash, /bin/sh               the shell of the init container and of the probes
//	/var/lib/haproxy/start-haproxy   the sidecar that runs HAProxy in the operator's image
//	/sbin/rsyslogd                   the container of the access log
//
// It is for the image that takes the place of the operator's without a change of its
// Deployment. It is no shell, no HAProxy and no rsyslogd: it knows the commands of that
// Deployment word by word (see texts.go), does what the pod needs of each, and exits
// with 127 and a line that says what it is for everything else.
//
// The init container copies start-haproxy into a volume, from where the sidecar may
// execute it in another image. So it is static and needs no other file. It imports
// little, because the sidecar is in every pod and does nothing: 5 MiB resident at most.
package main

import (
	"io"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Exit statuses.
const (
	failed   = 1
	notKnown = 127 // what a shell says of a command that it does not find
)

// maxShown is how many octets of an unknown command are printed.
const maxShown = 200

func main() {
	// The least heap at which garbage is collected is 4 MiB times this by hundred.
	debug.SetGCPercent(10)
	os.Exit(command(os.Args, deployed(), os.Stdout, os.Stderr))
}

// command does what argv asks for at places and returns the exit status.
func command(argv []string, at places, stdout, stderr io.Writer) int {
	name := "standin"
	if len(argv) > 0 && argv[0] != "" {
		name = path.Base(argv[0])
	}
	do, ok := find(name, argv)
	if !ok {
		say(stderr, refusal(name, argv))
		return notKnown
	}
	if err := do(at, stdout); err != nil {
		say(stderr, "Turnout's stand-in for "+name+": "+err.Error())
		return failed
	}
	return 0
}

// refusal is the line about a command that is none of the known ones.
func refusal(name string, argv []string) string {
	shown := ""
	if len(argv) > 1 {
		shown = strings.Join(argv[1:], " ")
	}
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "..."
	}
	return "this is Turnout's stand-in for " + strconv.Quote(name) + ", which is not in this image. It does what the containers of OpenShift's ingress operator execute, " +
		"in exactly these words, and nothing else; it was asked for " + strconv.Quote(shown)
}

// say writes a line. Nobody is left to tell if it cannot be written.
func say(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") }

// places are where the program finds things, so that tests have their own.
type places struct {
	config   string        // the folder that the init container copies
	copied   string        // where to
	run      string        // the folder of the sidecar's sockets
	log      string        // the socket of the log container
	patience time.Duration // of a probe with a socket; the operator's probes have 1 s
	until    func() <-chan os.Signal
	hostname func() (string, error)
	now      func() time.Time
}

// deployed are the places within the operator's pods.
func deployed() places {
	return places{
		config: "/var/lib/haproxy", copied: "/mnt/config", run: "/var/lib/haproxy/run", log: "/var/lib/rsyslog/rsyslog.sock",
		patience: 900 * time.Millisecond, until: ending, hostname: os.Hostname, now: time.Now,
	}
}
