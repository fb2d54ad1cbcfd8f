//go:build !linux

package reactor

// Elsewhere priorities belong to processes.
func goFirst() (thread int, err error) { return 0, nil }

// Yield does nothing on this system.
func Yield() {}

func niceOthers(map[int]bool, int) error { return nil }
