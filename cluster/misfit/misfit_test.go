package misfit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/provider"
)

// jobOf is a job that several workers work on.
type jobOf struct {
	t       *testing.T
	store   store.Store
	retries int
	stops   []string // why it was stopped, each time
	fails   bool     // it cannot be stopped
}

func newJob(t *testing.T) *jobOf { return &jobOf{t: t, store: storetest.NewMemory(), retries: 2} }

func (j *jobOf) worker(name string) *Answers {
	return New(Config{Store: j.store, Job: "j", Who: name, Retries: j.retries, Stop: func(_ context.Context, why string) bool {
		j.stops = append(j.stops, why)
		return !j.fails
	}})
}

// lines refuses each answer but the body "good".
var lines = promptfile.Config{Check: func(_ *promptfile.Item, r *provider.Reply) error {
	if string(r.Body) == "good" {
		return nil
	}
	return errors.New("it is not good")
}}

func newItem() *promptfile.Item { return promptfile.NewMaker(lines).Item(prompts.Request{Model: "m"}) }

// answer gives an item an answer, and returns the error of its call.
func (j *jobOf) answer(a *Answers, it *promptfile.Item, finish, body string) error {
	reply := provider.Reply{Body: []byte(body), Finish: finish}
	if fault := lines.Misfit(it, &reply); fault != nil {
		return a.DoesNotFit(j.t.Context(), it, finish, fault)
	}
	a.Fits(j.t.Context())
	return nil
}

// again reports whether a call's error has the item asked again.
func again(err error) bool {
	var fault *provider.Error
	return errors.As(err, &fault) && fault.AskAgain
}

// However many workers come and go, all of them ask items again for at most a tenth of the first answers, and for nearly as many
// if there are enough misfits.
func TestRetriesAreATenthOfTheAnswers(t *testing.T) {
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 0))
		j := newJob(t)
		workers := make([]*Answers, 1+chance.IntN(8))
		for i := range workers {
			workers[i] = j.worker(fmt.Sprint("w", i))
		}
		share := chance.Float64()
		firsts, repeats := 0, 0
		for range 2000 {
			at := chance.IntN(len(workers))
			if chance.IntN(200) == 0 { // it is killed, and another takes its place
				workers[at] = j.worker("another")
			}
			it := newItem()
			for first := true; ; first = false {
				if first {
					firsts++
				} else {
					repeats++
				}
				body := "good"
				if chance.Float64() < share {
					body = "bad"
				}
				if !again(j.answer(workers[at], it, "stop", body)) {
					break
				}
			}
		}
		if repeats > firsts/10 || share > 0.3 && share < 0.9 && repeats < firsts/20 {
			t.Errorf("seed %d: %d calls more for %d answers of which %.0f %% do not fit", seed, repeats, firsts, 100*share)
		}
	}
}

// An item is asked again as often as its user says, and never for an answer that was cut off.
func TestWhichItemsAreAskedAgain(t *testing.T) {
	for finish, want := range map[string][]int{"stop": {0, 1, 2, 3}, "": {0, 1, 2, 3}, "length": {0, 0, 0, 0}, "content_filter": {0, 0, 0, 0}} {
		for retries := range want {
			j := newJob(t)
			j.retries = retries
			a := j.worker("w")
			for range 100 {
				if err := j.answer(a, newItem(), "stop", "good"); err != nil {
					t.Fatal(err)
				}
			}
			it, n := newItem(), 0
			err := j.answer(a, it, finish, "bad")
			for ; again(err); n++ {
				err = j.answer(a, it, finish, "bad")
			}
			if n != want[retries] || !errors.Is(err, provider.Misfit) {
				t.Errorf("%q, %d retries: asked again %d times, want %d: %v", finish, retries, n, want[retries], err)
			}
		}
	}
}

// none gives a worker n answers to new items that do not fit, and returns the number of items that have failed.
func (j *jobOf) none(a *Answers, n int) (failed int) {
	j.t.Helper()
	for range n {
		switch err := j.answer(a, newItem(), "stop", "bad"); {
		case errors.Is(err, batch.ErrNotRun) && !errors.Is(err, provider.Misfit):
		case errors.Is(err, provider.Misfit):
			failed++
		default:
			j.t.Fatal(err)
		}
	}
	return failed
}

// The job stops if none of a worker's first answers fits. Items whose answers come later have not failed.
func TestTheJobStopsIfNoneFits(t *testing.T) {
	j := newJob(t)
	a, b := j.worker("a"), j.worker("b")
	if failed := j.none(a, First-1) + j.none(b, First-1); failed != 2*(First-1) || len(j.stops) > 0 {
		t.Fatalf("%d of %d have failed, and the job stops: %q", failed, 2*(First-1), j.stops)
	}
	if failed := j.none(a, 3); failed != 0 || len(j.stops) == 0 || j.stops[0] != "none of the first 20 answers fits the schema: it is not good" {
		t.Errorf("%d have failed, and the job stops: %q", failed, j.stops)
	}
	j.fails = true // as while the store is away
	if failed := j.none(b, 1); failed != 1 {
		t.Error("an item of a job that goes on has not failed")
	}
}

// One answer that fits, of any worker, is enough for all of them, also for those that come later.
func TestOneAnswerThatFits(t *testing.T) {
	for name, early := range map[string]bool{"before the misfits": true, "after some": false} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			a, b := j.worker("a"), j.worker("b")
			if !early {
				j.none(a, First-1)
				j.none(b, First-1)
			}
			if err := j.answer(a, newItem(), "stop", "good"); err != nil {
				t.Fatal(err)
			}
			for _, w := range []*Answers{a, b, j.worker("late")} {
				if failed := j.none(w, 3*First); failed != 3*First {
					t.Errorf("%d of %d have failed", failed, 3*First)
				}
			}
			if len(j.stops) > 0 {
				t.Errorf("the job stops: %q", j.stops)
			}
		})
	}
}

// A store that is away says nothing of other workers: the job goes on, and what could not be noted is noted by the next answer
// that fits.
func TestTheStoreIsAway(t *testing.T) {
	j := newJob(t)
	away := true
	j.store = &storetest.Flaky{Store: j.store, Rule: func(int, string, string) storetest.Fault {
		if away {
			return storetest.Refuse
		}
		return storetest.None
	}}
	a, b, good := j.worker("a"), j.worker("b"), j.worker("good")
	if j.none(a, 2*First) != 2*First || len(j.stops) > 0 {
		t.Errorf("the job stops: %q", j.stops)
	}
	for i := range 2 {
		away = i == 0
		if err := j.answer(good, newItem(), "stop", "good"); err != nil {
			t.Fatal(err)
		}
	}
	if j.none(a, First) != First || j.none(b, First) != First || len(j.stops) > 0 {
		t.Errorf("the job stops, although an answer fits: %q", j.stops)
	}
	j = newJob(t)
	if j.none(j.worker("a"), First); len(j.stops) != 1 || !strings.Contains(j.stops[0], "none of the first") {
		t.Errorf("%q", j.stops)
	}
}
