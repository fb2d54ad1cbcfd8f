// Package health finds out whether endpoints can be reached: a TCP connect now and then, with the TLS handshake
// of requests where requests need one, as the router this one replaces does it. No request is sent.
//
// A Checker belongs to one event loop and holds the checks of its share of the endpoints; a Monitor spreads the
// endpoints of a balancer.Registry over the checkers of all loops and brings what they find back to it. An endpoint is
// checked once, however many routes share it, at the shortest interval any of them asks for.
//
// An endpoint counts as up until Fall checks in a row have failed, and then as down until Rise in a row have succeeded.
// Checks of all endpoints together are bounded, see Config.MostPerSecond; requests that cannot connect to an endpoint tell
// sooner anyway (balancer.Server.CountFailure). Checks are spread over the interval, and each comes up to a tenth of it early or late, so that routers that started
// together do not go on checking together.
package health
