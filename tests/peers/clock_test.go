package peers

import (
	"time"

	"github.com/jonboulle/clockwork"
)

// fast is a clock that runs so many times as fast as the real one.
type fast struct {
	real  clockwork.Clock
	begun time.Time
	times time.Duration
}

func newFast(times int) fast {
	slow := clockwork.NewRealClock()
	return fast{real: slow, begun: slow.Now(), times: time.Duration(times)}
}

func (f fast) Now() time.Time                         { return f.begun.Add(f.real.Since(f.begun) * f.times) }
func (f fast) Since(t time.Time) time.Duration        { return f.Now().Sub(t) }
func (f fast) Until(t time.Time) time.Duration        { return t.Sub(f.Now()) }
func (f fast) After(d time.Duration) <-chan time.Time { return f.real.After(d / f.times) }
func (f fast) Sleep(d time.Duration)                  { f.real.Sleep(d / f.times) }

func (f fast) NewTicker(d time.Duration) clockwork.Ticker {
	return fastTicker{f.real.NewTicker(d / f.times), f.times}
}

func (f fast) NewTimer(d time.Duration) clockwork.Timer {
	return fastTimer{f.real.NewTimer(d / f.times), f.times}
}

func (f fast) AfterFunc(d time.Duration, do func()) clockwork.Timer {
	return fastTimer{f.real.AfterFunc(d/f.times, do), f.times}
}

type fastTimer struct {
	clockwork.Timer
	times time.Duration
}

func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / t.times) }

type fastTicker struct {
	clockwork.Ticker
	times time.Duration
}

func (t fastTicker) Reset(d time.Duration) { t.Ticker.Reset(d / t.times) }
