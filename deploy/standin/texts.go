package main

import (
	"io"
	"slices"
)

// deed is what a known command does. It returns when the command is done.
type deed func(at places, stdout io.Writer) error

// text is a command of the operator's Deployment.
type text struct {
	names []string // of the program, without its folder
	args  []string
	do    deed
}

// texts are all that is known. They were restated from cluster-ingress-operator of
// August 2026; releases before the sidecar execute only rsyslogd.
func texts() []text {
	shells := []string{"bash", "sh"}
	return []text{
		// the init container
		{shells, []string{"-c", "cp -R -p /var/lib/haproxy/* /mnt/config/"}, copyConfig},
		// the sidecar's startup probe
		{shells, []string{"-c", "echo show version | socat - /var/lib/haproxy/run/admin.sock"}, askAdmin},
		// its liveness and readiness probes
		{shells, []string{"-c", "echo show version | socat - /var/lib/haproxy/run/haproxy.sock"}, askStats},
		// the sidecar
		{
			[]string{"start-haproxy"},
			[]string{"-W", "-db", "-S", "/var/lib/haproxy/run/admin.sock,mode,600", "-f", "/var/lib/haproxy/conf/haproxy.config"},
			holdSockets,
		},
		// the log container
		{[]string{"rsyslogd"}, []string{"-n", "-i", "/tmp/rsyslog.pid", "-f", "/etc/rsyslog/rsyslog.conf"}, printLog},
	}
}

// find returns what the command argv of the program called name does, if it is known.
func find(name string, argv []string) (deed, bool) {
	if len(argv) == 0 {
		return nil, false
	}
	for _, t := range texts() {
		if slices.Contains(t.names, name) && slices.Equal(t.args, argv[1:]) {
			return t.do, true
		}
	}
	return nil, false
}
