// Package server answers queries of DNS over UDP and TCP from a set of zones, hands zones to secondaries (AXFR, RFC 5936), and tells these
// of changes (NOTIFY, RFC 1996). It answers for its zones only and never asks others.
//
//	UDP socket ─► worker ─► limiter ─┬─► zone.Set.Answer
//	TCP socket ─► gate ─► conn ──────┤
//	                                 ├─► signed: TSIG (RFC 8945), verified and answered with
//	                                 └─► transfer
//	Publish ─► zone.Set, behind one atomic pointer ─► notifier, one goroutine per secondary
//
// A worker reads a query, answers it and sends the answer: three steps without an allocation, a lock but for that of the client's rate, or a
// second goroutine. What is signed or transferred is rare, and goes by the message types of the library.
package server
