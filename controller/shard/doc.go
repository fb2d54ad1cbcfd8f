// Package shard decides which Routers serve a Route. It does no I/O and knows no clock but the one that it is given: objects and the results of
// writes go in, writes come out. Package strategy has ways to choose, package sim runs a million routes through it.
//
//	SetRoute, SetRouter, SetBinding,             ┌─────────┐
//	SetNamespace, Delete..., Synced ────────────►│         ├──► Next: actions, at most so many a second and so many at once
//	Done (what became of an action) ────────────►│ Planner │
//	Advance (the time) ─────────────────────────►│         ├──► Wake: when to call again; Summary, Stats, Trouble
//	                                             └────┬────┘
//	                                                  │ Schedule(route, routers that may have it)
//	                                               Strategy
//
// What the Planner knows is made of objects alone. It can be ended at any point and begun anew, and two of them may run for a moment: each write
// names the version of the object that it was decided by, so that the API refuses what is out of date, and a conflict is no error.
//
// # The life of a route
//
//	           no router may have it, or host is another's: tried again, for ever, with growing pauses
//	  new ─────────────────────────────────────────────────────────────┐
//	   │  ▲────────────────────────────────────────────────────────────┘
//	   │ CreateBinding, UpdateRoute
//	   ▼
//	scheduled: Pending ──(all ready replicas have it)──► Serving ◄──────────────────────────────────┐
//	                                                       │ taint Drain, router lost or gone, labels, capacity, rebalance
//	                                                       ▼                                        │
//	        CreateBinding on B ─► B Serving ─► MarkLeaving A ─► TTL and margin, nobody asks A ─► DeleteBinding A
//
// Routes of one host are bound to the same Routers, because its name in DNS leads to one place.
package shard
