// Package handover passes listening sockets from a running process to the one that takes its place, so that a new binary or
// new options need no moment in which connections are refused.
//
// The running process serves a UNIX socket (Serve). Its successor connects to it (Connect), gets copies of the listening
// sockets, prepares itself in peace, begins to accept and says so (Predecessor.Ready). Then, and only then, the old process
// stops accepting and finishes what it has. A successor that ends before it is ready changes nothing.
//
//	successor                         predecessor
//	connect            ───────────►
//	                   ◄───────────   version, number of listeners
//	                   ◄───────────   one message per listener: its name and its sockets (SCM_RIGHTS)
//	"ready"            ───────────►   Config.Release: accepts no more
//	                   ◄───────────   "released": the path of the UNIX socket is free
//
// Every process that may connect to the UNIX socket may take the sockets: it is made for its owner only, and belongs into a folder that
// others cannot write to.
package handover
