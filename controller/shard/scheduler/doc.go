// Package scheduler runs the Planner of package shard against an API server.
//
//	Feeder (package cluster) ─► objects ─► inbox ─► Planner ─► actions ─► writer ─► API server
//	                                         ▲                               │
//	                                         └────────── results ────────────┘
//
// One process of several does so at a time: the one that holds the Lease. It begins
// with nothing but what the API server says, and can be ended at any point. One
// goroutine owns the Planner; writes run beside it, as many at once as
// shard.Config.Flying.
package scheduler
