//go:build !linux

package reactor

// pipe exists on Linux only.
type pipe struct{}
