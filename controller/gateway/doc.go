// Package gateway says what the objects of the Gateway API mean: which listeners there are, which routes attach to which of them, what is
// done to their requests, and what status each object gets for it. It does no I/O and knows no time.
//
// One judgement feeds both the table and the status: a route has rules on the listeners that its status says it is attached to, and on no
// others.
//
//	objects ─► Judge ─► listeners, rules, ports (Result)            ─► the table
//	                └─► desired status, own entries only (Result)   ─► condition.Merge… ─► the API
//
// Objects are put into the tables of Objects, which remember what changed; Judge.Judge looks again at what depends on it and at nothing
// else.
package gateway
