package main

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
)

// limitOptions are the bounds of connections and heads.
type limitOptions struct {
	connections int // 0: no bound of our own
	bufferSize  int // bytes
	serverFin   time.Duration

	routeShare   int           // percent of connections that one route may have when they run out; 0 or 100: no bound
	closeTunnels time.Duration // after their route was deleted; 0: they stay
	held         int           // bytes; 0: a share of the memory limit
}

func limitSettings(o *options) []setting {
	l := &o.limits
	return []setting{
		{flag: "max-connections", env: "ROUTER_MAX_CONNECTIONS", def: "50000", value: "N", set: into(&l.connections, parseConnections),
			help: "client connections that may be open; more wait in the system's backlog; auto or 0: as many as there are descriptors"},
		{flag: "buf-size", env: "ROUTER_BUF_SIZE", def: "32768", value: "BYTES", set: into(&l.bufferSize, parseBytes),
			help: "a message head may be as long as this without --max-rewrite-size, but at least half of it"},
		{flag: "default-server-fin-timeout", env: "ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", def: "1s", value: "TIME", set: into(&l.serverFin, parseTimespec),
			help: "a tunnel whose pod has closed its half"},
		{flag: "route-connections-share", def: "25", value: "PERCENT", set: into(&l.routeShare, parsePercent),
			help: "of the connections that may be open, so many may belong to requests and tunnels of one route once three quarters of all are in use; 100: any number"},
		{flag: "close-tunnels-of-deleted-routes", value: "DURATION", set: into(&l.closeTunnels, parseDelay),
			help: "close tunnels so long after their route was deleted or got another host; 0 or absent: keep them"},
		{flag: "held-memory", def: "0", value: "MIB", set: into(&l.held, parseMebibytes),
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

const (
	defaultHeld   = 256 << 20 // bytes, in a process without a memory limit
	heldShare     = 4         // of the memory limit, the part that may be held for peers is one of so many
	leastLoopHeld = 4 << 20   // bytes, for one loop
)

// heldBytes is what each of so many loops may hold for peers that do not go on, in a process with a memory limit, 0 for none.
func (l *limitOptions) heldBytes(memoryLimit uint64, loops int) int {
	all := l.held
	switch {
	case all > 0:
	case memoryLimit > 0:
		all = int(memoryLimit / heldShare)
	default:
		all = defaultHeld
	}
	return max(all/max(loops, 1), leastLoopHeld)
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

// routeConnections is how many requests and tunnels one route may have at a time when connections run out, in a process that may
// have so many files; 0: any number. A request has two connections, the client's and the pod's.
func (l *limitOptions) routeConnections(files int) int {
	most := connectionFiles(files) / 2
	if l.connections > 0 && (most == 0 || l.connections < most) {
		most = l.connections
	}
	if most == 0 || l.routeShare <= 0 || l.routeShare >= 100 {
		return 0
	}
	return max(most*l.routeShare/100, min(most, leastRouteConnections))
}

// leastRouteConnections is what a route may have in the smallest of routers.
const leastRouteConnections = 16

// heads bounds the heads of messages.
func (l *limitOptions) heads(maxRewrite int) http1.Limits {
	return http1.Limits{HeadBytes: max(l.bufferSize-maxRewrite, l.bufferSize/2)}
}

// loops is the configuration of the event loops: a head fits into what they read at once.
func (l *limitOptions) loops(budget *reactor.Budget, panicked func(l *reactor.Loop, v any, stack []byte)) reactor.Config {
	return reactor.Config{ReadBuffer: max(l.bufferSize, defaultReadBuffer), Budget: budget, Panicked: panicked}
}

// budget is what may be open at the same time, in a process that may have so many files; 0: any number.
func (l *limitOptions) budget(files int) *reactor.Budget {
	return reactor.NewBudget(reactor.BudgetConfig{Connections: l.connections, Descriptors: connectionFiles(files)})
}

// connectionFiles is how many of the descriptors of the process are for connections.
func connectionFiles(files int) int { return max(files-ownDescriptors, files/2) }

// ownDescriptors are not for connections of clients and to pods: the admin port, the API server and the logs need them however
// many clients there are.
const ownDescriptors = 128

// reservedDescriptors is for how many descriptors there is room from the beginning: half a MiB of the kernel's memory.
const reservedDescriptors = 1 << 16

// defaultReadBuffer is what loops read at once, at least.
const defaultReadBuffer = 64 << 10

// descriptorLimit is how many descriptors the process may have, 0 = nobody knows. Go has raised it as far as it may.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
