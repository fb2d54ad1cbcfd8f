//go:build !linux

package reactor

// LowerPriority does nothing: elsewhere priorities belong to processes.
func LowerPriority(int) {}

// YieldCore does nothing on this system.
func YieldCore() {}
