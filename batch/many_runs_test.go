package batch

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/limiter"
	admission "github.com/headrace/headrace/limiter/laws"
)

// An askedMaker makes plain laws that count how often they are asked. The owner alone asks.
type askedMaker struct{ asked int }

func (m *askedMaker) NewLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	c.Maker, c.Law = nil, limiter.Plain
	return &askedLaw{admission.New(c, now, rng), m}
}

type askedLaw struct {
	limiter.Law
	maker *askedMaker
}

func (l *askedLaw) Wait(now time.Time, cost limiter.Cost) (time.Duration, limiter.Bound) {
	l.maker.asked++
	return l.Law.Wait(now, cost)
}

// Many runs on one lane take turns, and each call of them asks the lane a few times, not once
// for each run that waits.
func TestManyRunsOfASharedTakeTurns(t *testing.T) {
	const runs, each = 300, 3
	synctest.Test(t, func(t *testing.T) {
		maker := &askedMaker{}
		shared, err := NewShared(WithLane("", LaneConfig{Maker: maker, Limits: limiter.Limits{RPM: 600}}))
		if err != nil {
			t.Fatal(err)
		}
		ended := make([][]time.Duration, runs)
		begun := time.Now()
		var group sync.WaitGroup
		for id := range runs {
			group.Go(func() {
				for r, err := range Stream(t.Context(), numbers(each), takes(time.Millisecond), WithShared(shared)) {
					if err != nil || r.Err != nil {
						t.Error(err, r.Err)
					}
					ended[id] = append(ended[id], time.Since(begun))
				}
			})
		}
		group.Wait()
		shared.Close()
		synctest.Wait()
		if most := 5 * runs * each; maker.asked > most {
			t.Errorf("%d calls asked %d times, want at most %d", runs*each, maker.asked, most)
		}
		turn := 60 * time.Second / 600 * runs
		for id, at := range ended {
			for k := range at[1:] {
				if wait := at[k+1] - at[k]; wait > turn+time.Second {
					t.Errorf("run %d waited %v for its next call, want at most a turn of %v", id, wait, turn)
				}
			}
		}
	})
}
