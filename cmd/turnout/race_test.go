//go:build race

package main

// raced: the race detector makes everything about ten times slower.
const raced = true
