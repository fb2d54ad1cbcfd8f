package main

import (
	"errors"
	"strconv"
	"strings"
)

func limitSettings(o *options) []setting {
	l := &o.server.Limits
	return []setting{
		{flag: "max-connections", env: "ROUTER_MAX_CONNECTIONS", def: "50000", value: "N", set: into(&l.Connections, parseConnections),
			help: "client connections that may be open; more wait in the system's backlog; auto or 0: as many as there are descriptors"},
		{flag: "buf-size", env: "ROUTER_BUF_SIZE", def: "32768", value: "BYTES", set: into(&l.BufferSize, parseBytes),
			help: "a message head may be as long as this without --max-rewrite-size, but at least half of it"},
		{flag: "default-server-fin-timeout", env: "ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", def: "1s", value: "TIME", set: into(&o.server.Proxy.Timeouts.ServerFin, parseTimespec),
			help: "a tunnel whose pod has closed its half"},
		{flag: "route-connections-share", def: "25", value: "PERCENT", set: into(&l.RouteShare, parsePercent),
			help: "of the connections that may be open, so many may belong to requests and tunnels of one route once three quarters of all are in use; 100: any number"},
		{flag: "close-tunnels-of-deleted-routes", value: "DURATION", set: into(&o.server.Proxy.CloseTunnels, parseDelay),
			help: "close tunnels so long after their route was deleted or got another host; 0 or absent: keep them"},
		{flag: "held-memory", def: "0", value: "MIB", set: into(&l.HeldBytes, parseMebibytes),
			help: "memory for what clients and pods do not take or complete, in MiB; beyond it connections of whoever holds most end; 0: a quarter of the memory limit, 256 without one"},
	}
}

// parseMebibytes reads a number of MiB and returns bytes.
func parseMebibytes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > 1<<20 {
		return 0, errors.New("allowed: a number of MiB up to 1048576")
	}
	return int(n) << 20, nil
}

// parseConnections reads a number of connections; 0 is no bound.
func parseConnections(s string) (int, error) {
	if s == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("allowed: a whole number, or auto")
	}
	return max(n, 0), nil
}

// parsePercent reads a whole number from 1 to 100.
func parsePercent(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 100 || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a whole number from 1 to 100")
	}
	return n, nil
}
