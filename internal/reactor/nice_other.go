//go:build !linux

package reactor

// LowerPriority does nothing: elsewhere priorities belong to processes.
func LowerPriority(int) {}
