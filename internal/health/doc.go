// Package health finds out whether endpoints are well: a TCP connect now and then, with the TLS handshake of requests where
// requests need one, as the HAProxy router does it. Where a route asks for it, a request follows, and the status of
// its answer decides.
//
// A Checker belongs to one event loop and makes its share of the checks; a Monitor spreads those that the pools of a
// balancer.Registry want over the checkers of all loops and brings what they find back to it. What is checked is a
// balancer.Check, one way of checking one endpoint: once, however many routes share it, at the shortest interval any of them
// asks for.
//
//	wait ──► connect ──► TLS handshake ──► request, head of the answer ──► conclude ──► wait
//	        └ a timeout ┘└──────────────── another one ───────────────┘
//
// A plain endpoint has no handshake, and without a request the check ends before it. Then the connection is reset: of an answer no
// more than the head is read. A check that runs has a connection and no goroutine; it keeps input only while a head is incomplete.
//
// An endpoint counts as up until Fall checks in a row have failed, and then as down until Rise in a row have succeeded.
// Checks of all endpoints together are bounded, see Config.MostPerSecond; requests that cannot connect to an endpoint tell
// sooner anyway (balancer.Server.CountFailure). Checks are spread over the interval, and each comes up to a tenth of it early or
// late, so that routers that started together do not go on checking together.
package health
