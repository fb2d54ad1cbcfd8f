//go:build !linux

package memory

// returnCode does nothing on this system.
func returnCode() {}

// residentCode is not known on this system.
func residentCode() uint64 { return 0 }
