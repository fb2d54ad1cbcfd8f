// Package reactor does the I/O of Turnout: event loops that own sockets, timers and buffers. It knows
// nothing of the protocols; a Handler gets the bytes of a Conn, a Layer (TLS) may sit in between.
//
// Everything of one Loop happens on one goroutine, one thing at a time: no locks, no races. Only Post
// and Stop may be called from elsewhere.
//
// # The life of an iteration
//
//	wait      the engine sleeps until a socket is ready, somebody posts, or a timer is due
//	events    for each socket of the batch: read a bounded number of bytes, present them (Data, EOF);
//	          note that it can be written; those of unestablished Conns (Conn.Establish) are put aside
//	mailbox   what other goroutines posted before
//	timers    what is due
//	ready     Conns that have more input than one iteration may take, were resumed, got another handler or
//	          layer, or whose output drained
//	end       AtIterationEnd functions, then every Conn that was written to is flushed with one send, then
//	          the ends of connections are reported (Closed), and what that caused is flushed
//	accept    a few connections of each listener that has some
//	yielded   Conns that did their share of an iteration before (Conn.Yield), for 20 microseconds
//	low       events of unestablished Conns or work of low priority (Loop.RunLowPriority), in alternate iterations, for 50
//	          microseconds; and the iteration end once more for what that caused
//
// If anything is left for the next iteration, that does not sleep.
//
// Between two Conns, functions of the mailbox or timers the loop sends what was collected once 32 Conns have some: an iteration with a
// thousand busy Conns needs the buffers of 32.
//
// # Memory
//
// A loop counts what it holds for peers that do not go on (Held), and ends Conns of those who make it hold most when that is more
// than Config.HeldBytes.
//
// # Threads
//
// A Group runs each loop on a goroutine. What runs the process gives the Go scheduler a slot for each of them and one more.
//
// # Reading
//
// Sockets are registered once, edge-triggered; each Conn remembers whether its socket may be read and
// written. Input is read into one buffer per loop and presented there: a connection that waits for
// its peer holds no buffer. Only what a handler leaves unconsumed is kept aside, and put in front of
// the next bytes. A receive shorter than the buffer is the last one, unless the peer's FIN or an
// error is known: then the Conn reads on until it finds it.
//
// # Writing
//
// Output is queued in a buffer from the loop's arena and sent when the iteration ends, so that the answers
// to a batch of events are one send; more than 16 KiB are sent at once, without copying what the
// socket takes. A Conn whose queue passes HighWater is Congested: its producer pauses its own source
// and resumes it when Drained is called. Nothing blocks and nothing fails while it is called; the
// reason of a failure comes with Closed.
//
// # Ending
//
// Every Conn ends with exactly one Closed. Close sends what is queued and FIN, waits a little for the
// peer's FIN and drops what it sends meanwhile; ClosePromised does not wait for one that has promised silence, and CloseNow does none of it. An event for a socket that
// was closed earlier in the same batch is dropped, also when its descriptor is in use again.
//
// # Panics
//
// With Config.Panicked a panic over a Conn ends it and those that it may have been writing to, and the loop goes on. A panic in
// the machinery of the loop itself ends the process: listeners, budgets and timers are shared by everybody.
//
// # Engines
//
// epoll on Linux; a goroutine-fed one anywhere else (NewPortable); one in memory, with virtual time
// and faults, for tests (package memnet). They implement the interfaces of package engine.
package reactor
