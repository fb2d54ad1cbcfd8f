// Package strategy has ways to choose a router for a route, for the Planner of package shard. Each is made by a function of its name and does no
// I/O. Those for administrators who do not write their own in Go have packages: expression (CEL) and webhook.
package strategy
