// Package strategy has ways to choose a router for a route, for the Planner of package shard. Each is made by a function of its name. None but
// Webhook does I/O.
package strategy
