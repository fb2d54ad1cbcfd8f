//go:build !unix

package reactor

import "syscall"

// sharePort: these systems do not let loops share an address; a Group there needs to be of one loop.
func sharePort(_, _ string, _ syscall.RawConn) error { return nil }
