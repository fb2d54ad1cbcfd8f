// Package zone is zones of DNS, and what an authoritative server answers from them. A Zone is made by New of plain data and never changes;
// a Set is all zones of a server. Records stand in a Zone as they stand in answers, so that an answer is made by copying and costs no
// allocation.
//
//	Spec ──New──► Zone ──NewSet──► Set ◄── Query ◄──Parse── message
//	               │                └──Answer──► message
//	               └──Records──► transfers, zone files
//
// A zone has an apex, addresses for the apex and for every name that nothing else is said of (the wildcard, RFC 4592), names of its own, and
// cuts, where other zones begin. It has no DNAME records and is not signed. Nothing here does input or output or knows the time.
package zone
