// Package load is the client and the backend of Turnout's benchmarks: an HTTP/1.1 load generator and
// a fixed-answer backend that share one epoll loop on one thread, so that together they cost less than
// any proxy between them and the proxy is what is measured.
//
// A Rig owns the loop and the backend's listeners. Drive runs a closed loop over keep-alive connections
// (one request at a time on each) and checks every answer: status, framing and each byte of the body.
// The body names the upstream that sent it, so an answer from the wrong upstream is a failure too.
// Probe sends one request and shows what the backend received, to confirm that two proxies do the same
// work before they are compared.
//
// Rig works on Linux only; response.go and traffic.go are pure and build everywhere.
package load
