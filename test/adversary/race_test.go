//go:build race

package adversary

// raced reports whether the race detector is on. It multiplies times.
const raced = true
