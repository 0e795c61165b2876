//go:build race

package machine

// raceDetector says whether the tests run under the race detector.
const raceDetector = true
