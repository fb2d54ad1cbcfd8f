// Package proxy is the request pipeline: the one place that knows in which order
// things happen to a request, whatever protocol it came in by and goes out by.
//
// It sees no wire format, no socket and no clock of its own. Codecs (proxy/h1 and
// proxy/h2) feed it heads, body bytes and ends, and carry out what it asks of the
// two interfaces Downstream (the client's half) and Upstream (the endpoint's half).
// All of one Exchange happens on one loop, one call at a time: nothing here locks.
//
// # The life of an exchange
//
//		                        Queue ◄─┐ all servers are full
//		                   called │     │
//		            Request       ▼     │    Acquire gave none             UpstreamReady
//		  Free ───────────────► Choose ─────────────────────────► Connect ────────────────┐
//		                          │ Acquire gave a pooled one        │ UpstreamFault       │
//		                          └───────────────┐                  │ (another endpoint)  │
//		                                          ▼                  ▼                     │
//		                  stale: again ◄──────── Send ◄──────────────┴─────────────────────┘
//		                                          │ ResponseHead
//		                       101 ┌──────────────┼──────────────┐ no body
//		                           ▼              ▼              ▼
//		                        Tunnel          Body ─────────► Done
//		                                          ResponseEnd
//
//	 1. Request loads one table and keeps it to the end.
//	 2. Match chooses the route; no route, a redirect or a refused method is answered
//	    here (answer, redirect). The route's allow-list and limits per source address
//	    come next (admit): who is refused gets no answer.
//	 3. requestPolicy strips what the outside may not say, ends hop-by-hop fields, adds
//	    the forwarded fields and takes the sticky cookie out.
//	 4. choose picks an endpoint (a lease), or waits in the queue of the pool until one
//	    may have another request; connect acquires an upstream; send hands it the
//	    head. retry classifies faults: nothing sent → another endpoint; a pooled
//	    connection that died → the same endpoint on a fresh one, if the method may be
//	    replayed; anything else is answered 502, 503 or 504.
//	 5. ResponseHead strips, adds HSTS and the sticky cookie, and relays. Bodies flow both
//	    ways at once; a side whose output is congested pauses the other side's input.
//	 6. finish is the one exit: lease, counters, access log.
//
// A route may ask for more attempts (RetrySpec): after a fault, or an answer with one of its codes, the exchange is in Backoff until the next one may
// begin, and chooses again. What may be sent again is decided by the same rule for all attempts (Replayable).
//
// A request is sent whole or not at all. Every attempt begins in send, which sends nothing unless
// every byte received of the request is available (Exchange.repeatable). The codecs compare the
// body with the announced length.
//
// One timer watches an exchange. When it fires, the state says who is waited for:
// the client (Timeouts.Client), the endpoint (the route's server timeout) or a place
// at one (Timeouts.Connect); and a route may say how long an attempt, or all of it, may take (deadlines.go).
//
// Every event comes in by attempts.enter (events.go), which has the table of the events that mean something in each state, and
// notes what is at work: should it panic, Worker.Interrupted gives up that exchange and no other.
//
// Upgrades leave as a tunnel: see Downstream.Upgrade. Passthrough connections never become an exchange but a Relay. Both are attempts: what
// chooses a server, waits for one, tries again within the budget, counts, logs and gives back is the same.
package proxy
