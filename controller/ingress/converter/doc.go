// Package converter makes Routes of Ingresses, as package convert says, and keeps them so.
//
//	Feeder (package cluster) ─► events ─► converting ─► convert.Make ─► writes ─► API server
//	                                         ▲                            │
//	                                         └───────── results ──────────┘
//
// One process of several does so at a time: the one that holds the Lease. One goroutine knows the objects and decides; writes run beside it, those of one
// Ingress one after the other. An Ingress of which Routes were made is not looked at again before these have been seen, lest they are made twice.
package converter
