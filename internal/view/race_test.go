//go:build race

package view

// raced: the race detector makes everything about ten times slower.
const raced = true
