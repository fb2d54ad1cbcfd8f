//go:build race

package admin

// raced: the race detector makes everything about ten times slower.
const raced = true
