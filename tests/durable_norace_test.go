//go:build !race

package tests

// raceDetector says whether the tests run under the race detector.
const raceDetector = false
