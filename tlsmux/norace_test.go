//go:build !race

package tlsmux

const raceDetector = false
