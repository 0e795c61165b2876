package misfit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
)

// First is the number of answers of a worker of which one at least must fit, as in a run of one process.
const First = 20

// Config says whose answers are counted. All fields but Retries are needed.
type Config struct {
	Store store.Store
	Job   string
	Who   string // its worker, for people who look into the store
	// Retries is the number of times that an item is asked again.
	Retries int
	// Stop stops the job for a reason, and reports whether it has stopped, now or before.
	Stop func(ctx context.Context, why string) bool
}

// Answers counts a worker's answers of one job. Any goroutine may call its methods. Create it with [New].
type Answers struct {
	cfg Config

	mu      sync.Mutex
	count   int  // answers
	good    int  // of which fit
	repeats int  // answers after which the item is asked again
	noted   bool // the store has the note

	// looks has one place, for the goroutine that writes the note or looks for it.
	looks chan struct{}
}

// New returns the count of a worker that has no answer yet.
func New(c Config) *Answers { return &Answers{cfg: c, looks: make(chan struct{}, 1)} }

// Fits counts an answer that fits. The first one waits for the store; if the store is away, the next one tries again.
func (a *Answers) Fits(ctx context.Context) {
	a.mu.Lock()
	a.count, a.good = a.count+1, a.good+1
	noted := a.noted
	a.mu.Unlock()
	if noted {
		return
	}
	select {
	case a.looks <- struct{}{}:
	default:
		return // somebody is there
	}
	defer func() { <-a.looks }()
	err := store.CreateBytes(ctx, a.cfg.Store, job.FitsName(a.cfg.Job), []byte(a.cfg.Who+"\n"))
	if err == nil || errors.Is(err, store.ErrExists) {
		a.note()
	}
}

// DoesNotFit counts an answer with a fault, and returns the error of its call. With AskAgain its item is asked again.
// An item of a job that has stopped was not run: it has not failed.
func (a *Answers) DoesNotFit(ctx context.Context, it *promptfile.Item, finish string, fault *provider.Error) error {
	if first := a.bad(); first > 0 && a.none(ctx, first, fault) {
		return fmt.Errorf("%w: %w: %w", batch.ErrNotRun, provider.Canceled, fault.Err)
	}
	_, isCut := provider.FinishKind(finish)
	fault.AskAgain = !isCut && it.Misfits() <= a.cfg.Retries && a.repeat()
	return fault
}

// bad counts an answer that does not fit. It returns the number of answers if they are enough to stop the job, else 0.
func (a *Answers) bad() (first int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count++; a.good > 0 || a.count < First {
		return 0
	}
	return a.count
}

// repeat takes room for asking an item again, if there is any.
func (a *Answers) repeat() (taken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if taken = a.repeats < (a.count-a.repeats)/batch.MisfitShare; taken {
		a.repeats++
	}
	return taken
}

// none stops the job, unless an answer fits that another worker got. It reports whether the job has stopped. While the
// store does not say whether there is such an answer, the job goes on.
func (a *Answers) none(ctx context.Context, first int, fault *provider.Error) (stopped bool) {
	select {
	case a.looks <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-a.looks }()
	if a.oneFits() {
		return false
	}
	in, err := a.cfg.Store.Open(ctx, job.FitsName(a.cfg.Job), 0, 1)
	if err == nil {
		_ = in.Close() // it was not read
		a.note()
	}
	if !errors.Is(err, store.ErrMissing) {
		return false
	}
	return a.cfg.Stop(ctx, fmt.Sprintf("none of the first %d answers fits the schema: %s", first, fault.Message))
}

// oneFits reports whether an answer of the job fits, as far as this worker knows.
func (a *Answers) oneFits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.noted || a.good > 0
}

// note remembers that the store has the note.
func (a *Answers) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = true
}
