//go:build race

package tlsmux

// raceDetector: sync.Pool drops at random what is put into it, so allocations cannot be counted.
const raceDetector = true
