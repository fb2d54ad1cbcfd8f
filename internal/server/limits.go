package server

import (
	"syscall"

	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
)

const (
	defaultHeld   = 256 << 20 // bytes, in a process without a memory limit
	heldShare     = 4         // of the memory limit, the part that may be held for peers is one of so many
	leastLoopHeld = 4 << 20   // bytes, for one loop

	defaultSessions = 65536 // of UDP
)

// heldBytes is what each of so many loops may hold for peers that do not go on, in a process with a memory limit, 0 for none.
func (l *Limits) heldBytes(memoryLimit uint64, loops int) int {
	all := l.HeldBytes
	switch {
	case all > 0:
	case memoryLimit > 0:
		all = int(memoryLimit / heldShare)
	default:
		all = defaultHeld
	}
	return max(all/max(loops, 1), leastLoopHeld)
}

// sessions is how many sessions of UDP each of so many loops may have, in a process that may have so many files; 0 = what is usual.
func (l *Limits) sessions(files, loops int) int {
	all := l.UDPSessions
	if all <= 0 {
		all = defaultSessions
	}
	if most := connectionFiles(files) / 4; most > 0 {
		all = min(all, most)
	}
	return max(all/max(loops, 1), 1)
}

// routeConnections is how many requests and tunnels one route may have at a time when connections run out, in a process that may
// have so many files; 0: any number. A request has two connections, the client's and the pod's.
func (l *Limits) routeConnections(files int) int {
	most := connectionFiles(files) / 2
	if l.Connections > 0 && (most == 0 || l.Connections < most) {
		most = l.Connections
	}
	if most == 0 || l.RouteShare <= 0 || l.RouteShare >= 100 {
		return 0
	}
	return max(most*l.RouteShare/100, min(most, leastRouteConnections))
}

// leastRouteConnections is what a route may have in the smallest of routers.
const leastRouteConnections = 16

// heads bounds the heads of messages.
func (l *Limits) heads(maxRewrite int) http1.Limits {
	return http1.Limits{HeadBytes: max(l.BufferSize-maxRewrite, l.BufferSize/2)}
}

// budget is what may be open at the same time, in a process that may have so many files; 0: any number.
func (l *Limits) budget(files int) *reactor.Budget {
	return reactor.NewBudget(reactor.BudgetConfig{Connections: l.Connections, Descriptors: connectionFiles(files)})
}

// connectionFiles is how many of the descriptors of the process are for connections.
func connectionFiles(files int) int { return max(files-ownDescriptors, files/2) }

// ownDescriptors are not for connections of clients and to pods: the admin port, the API server and the logs need them however
// many clients there are.
const ownDescriptors = 128

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
