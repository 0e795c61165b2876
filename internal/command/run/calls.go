package run

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// options returns the options of the run's calls.
func (r *runner) options() []batch.Option {
	seed := r.Chance
	if r.Flags.Seeded {
		seed = r.Flags.Seed
	}
	answers := r.Flags.Answering(r.Flags.Preset)
	opts := []batch.Option{
		batch.WithLimits(r.Flags.Limits()),
		batch.WithCharge(answers.Charge),
		batch.WithPeriods(answers.Periods),
		batch.WithMaxAttempts(r.Flags.MaxAttempts),
		batch.WithAttemptTimeout(r.Flags.Timeout),
		batch.WithItemTimeout(r.Flags.ItemTimeout),
		batch.WithSeed(seed),
		batch.WithClock(r.Clock),
		batch.WithLongWait(r.Flags.LongWait),
		batch.WithFirstAnswer(r.Flags.FirstAnswer),
	}
	if r.log != nil && r.log.Enabled(context.Background(), slog.LevelDebug) { // another main may set its log later
		opts = append(opts, batch.WithRetryHook(r.logRetry))
	}
	opts = append(opts, r.endOptions()...)
	opts = append(opts, r.Flags.LawOptions()...)
	opts = append(opts, r.Flags.Lanes.Options(r.Flags.Law)...)
	return append(opts, r.stateOptions()...)
}

// call makes one call of one item.
func (r *runner) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	asks := it.Asks()
	asks.Lane = batch.LaneFrom(ctx)
	r.sayBound(it)
	if !r.log.Enabled(ctx, slog.LevelDebug) {
		reply, err := r.Account.Do(ctx, asks)
		r.noteFault(it, err)
		return reply, err
	}
	began := r.Clock.Now()
	reply, err := r.Account.Do(ctx, asks)
	r.noteFault(it, err)
	r.logCall(ctx, it, &reply, r.Clock.Now().Sub(began), err)
	return reply, err
}

// sayBound says once that a prompt has a bound on its answer that the user has not set.
func (r *runner) sayBound(it *promptfile.Item) {
	if !r.bounds.Load() || !it.Form.IsPrompt() || estimate.MaxOutput(it.Body) > 0 || !r.bounds.Swap(false) {
		return
	}
	r.console.Notice(event.MaxTokens, fmt.Sprintf("prompts without max_tokens get %s, as %s requires a max_tokens: --max-tokens sets another",
		words.Thousands(float64(r.Flags.MaxTokens)), r.Account.Name))
}

// failing holds the items whose calls break and that have not ended. Workers note them.
type failing struct {
	mu    sync.Mutex
	items map[string]int // calls that broke, by the item's id
	said  bool
}

// note counts a call of an item that broke, and reports whether the item should be looked at.
func (f *failing) note(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said || f.items[id] == 0 && len(f.items) >= verdict.MostFailing {
		return false
	}
	if f.items == nil {
		f.items = map[string]int{}
	}
	f.items[id]++
	return f.items[id] >= verdict.FailingCalls
}

// drop forgets an item that has ended.
func (f *failing) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, id)
}

// say reports whether to give the notice now, which happens once, and for how many items.
func (f *failing) say(p *observe.Snapshot) (items int, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.items {
		if calls >= verdict.FailingCalls {
			items++
		}
	}
	now = !f.said && p.Open+p.HalfOpen == 0 && p.Answered >= verdict.FailingFew*items
	f.said = f.said || now
	return items, now
}

// noteFailing notes a call that broke, and says once that an item keeps failing while the
// others are answered.
func (r *runner) noteFailing(it *promptfile.Item, e *provider.Error) {
	if r.recorder == nil || !e.Kind.BreakerCounts() || e.Kind.Cools() || !r.failing.note(it.ID) {
		return
	}
	p := r.recorder.Snapshot(r.Clock.Now())
	if n, now := r.failing.say(&p); now {
		text := fmt.Sprintf("%s so far while the rest are answered: %s", keepFailing(n), r.verdict.FailedAs(it.ID, verdict.FailingCalls, e))
		if n > 1 {
			text += ", and so on"
		}
		r.console.Notice(event.Failing, text)
	}
}

// keepFailing says that the calls of items keep breaking. The items have not ended, as a later
// call may still be answered.
func keepFailing(items int) string {
	if items == 1 {
		return "1 item keeps failing"
	}
	return words.Count(items, "item") + " keep failing"
}

// alikeFailures is the number of items that may fail alike, of a model that was never
// answered, before the run stops. That many tell a mistake in every line from one that a few
// lines share.
const alikeFailures = 20

// endOptions returns the options that say when a run stops, or goes on, as its calls fail.
func (r *runner) endOptions() []batch.Option {
	opts := []batch.Option{batch.WithOutagePatience(r.Flags.OutagePatience)}
	if r.Flags.KeepGoing {
		opts = append(opts, batch.WithKeepGoing())
	} else {
		opts = append(opts, batch.WithAlikeFailures(alikeFailures))
	}
	if r.answeredBefore {
		opts = append(opts, batch.WithAnsweredBefore())
	}
	return append(opts, r.Flags.MaxFailures.Options()...)
}

// troubles records the breakers that opened during a run. Only the observer uses it until
// the run is over.
type troubles struct {
	opened int    // the number of times
	why    string // why calls broke, the latest time
}

// plain puts an event's reasons for broken calls into words, and notes them.
func (r *runner) plain(e batch.Event) batch.Event {
	if e.Transition != nil {
		t := *e.Transition // others get the same event
		t.Cause = r.Reason(t.Cause)
		if t.Reason == machine.ByBreaker && t.To == machine.Cooling {
			r.troubles.opened++
			r.troubles.why = verdict.ReasonOf(t.Cause)
		}
		e.Transition = &t
	}
	return e
}

// noteFault notes a call that was not answered, and says once that a server names an
// implausible wait.
func (r *runner) noteFault(it *promptfile.Item, err error) {
	e := verdict.FaultOf(err)
	if e == nil {
		return
	}
	r.verdict.Latest.Store(e)
	r.noteFailing(it, e)
	if e.OddWait != "" {
		r.oddOnce.Do(func() {
			r.console.Notice(event.OddWait, fmt.Sprintf("the provider asks for an absurd wait (%s), which is ignored", verdict.Shown(r.Redact(e.OddWait))))
		})
	}
}
