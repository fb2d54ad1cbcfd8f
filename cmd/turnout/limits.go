package main

import (
	"turnout/internal/option"
)

func limitSettings(o *options) []option.Option {
	l := &o.server.Limits
	return []option.Option{
		{Flag: "max-connections", Env: "ROUTER_MAX_CONNECTIONS", Def: "50000", Value: "N", Set: option.Into(&l.Connections, option.ParseConnections),
			Help: "client connections that may be open; more wait in the system's backlog; auto or 0: as many as there are descriptors"},
		{Flag: "buf-size", Env: "ROUTER_BUF_SIZE", Def: "32768", Value: "BYTES", Set: option.Into(&l.BufferSize, option.ParseBytes),
			Help: "a message head may be as long as this without --max-rewrite-size, but at least half of it"},
		{Flag: "default-server-fin-timeout", Env: "ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", Def: "1s", Value: "TIME", Set: option.Into(&o.server.Proxy.Timeouts.ServerFin, option.ParseTimespec),
			Help: "a tunnel whose pod has closed its half"},
		{Flag: "route-connections-share", Def: "25", Value: "PERCENT", Set: option.Into(&l.RouteShare, option.ParsePercent),
			Help: "of the connections that may be open, so many may belong to requests and tunnels of one route once three quarters of all are in use; 100: any number"},
		{Flag: "close-tunnels-of-deleted-routes", Value: "DURATION", Set: option.Into(&o.server.Proxy.CloseTunnels, option.ParseDelay),
			Help: "close tunnels so long after their route was deleted or got another host; 0 or absent: keep them"},
		{Flag: "held-memory", Def: "0", Value: "MIB", Set: option.Into(&l.HeldBytes, option.ParseMebibytes),
			Help: "memory for what clients and pods do not take or complete, in MiB; beyond it connections of the address that holds most end; 0: a quarter of the memory limit, 256 without one"},
	}
}
