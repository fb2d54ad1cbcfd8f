//go:build race

package adversary

// raced reports whether the race detector is on, which multiplies times.
const raced = true
