//go:build !race

package adversary

// raced reports whether the race detector is on.
const raced = false
