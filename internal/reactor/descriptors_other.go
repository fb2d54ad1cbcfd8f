//go:build !linux

package reactor

// ReserveDescriptors does nothing on this system.
func ReserveDescriptors(int) error { return nil }
