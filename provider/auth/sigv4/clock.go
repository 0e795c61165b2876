package sigv4

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/provider"
)

const (
	// dateForm is AWS's format for the time of a signature.
	dateForm = "20060102T150405Z"
	// farOff is the largest error of a signature's time: AWS accepts it for five minutes.
	farOff = 5 * time.Minute
	// settled is the least time between two corrections of the clock. A server whose dates change
	// with every answer gets no more tries; a clock that somebody sets while a run goes on is followed.
	settled = 10 * time.Minute
)

// clock is this machine's clock, corrected by the time that a provider gives.
type clock struct {
	mu    sync.Mutex
	off   time.Duration // added to this machine's time
	since time.Time     // when it was put right; zero: never
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

// putRight takes over a provider's time. It returns false if the clock was put right a moment
// ago and that was wrong. It returns true without a change if the clock is right by now.
func (c *clock) putRight(theirs time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	off := theirs.Sub(now)
	switch {
	case (off - c.off).Abs() <= farOff:
		return true
	case !c.since.IsZero() && now.Sub(c.since) < settled:
		return false
	}
	c.off, c.since = off, now
	return true
}

// Names and phrases by which services of AWS say that the time of a signature is wrong.
var (
	clockNames   = []string{"requestexpired", "requesttimetooskewed", "requestinthefuture"}
	clockPhrases = []string{"signature expired", "signature not yet current"}
)

func blamesClock(e *provider.Error) bool {
	for _, name := range []string{e.Code, e.Type} {
		if slices.Contains(clockNames, strings.TrimSuffix(strings.ToLower(name), "exception")) {
			return true
		}
	}
	message := strings.ToLower(e.Message)
	return slices.ContainsFunc(clockPhrases, func(phrase string) bool { return strings.Contains(message, phrase) })
}
