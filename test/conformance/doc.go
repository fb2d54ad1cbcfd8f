// Package conformance holds raw conversations with the assembled router: what a
// client sends byte by byte, what the pod answers, and what must become of it. One
// file of testdata is one clause of a specification; README.md there describes the
// language. A conversation has one agreed meaning or is rejected and its
// connections end; nothing ambiguous is ever forwarded.
package conformance
