//go:build !linux

package reactor

// Elsewhere priorities belong to processes.
func goFirst() (thread int, err error)   { return 0, nil }
func niceOthers(map[int]bool, int) error { return nil }
