package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// calls makes the calls of a run, and notes those that break.
type calls struct {
	*verdict.Facts
	verdict *verdict.Verdict
	log     *runLog
	show    *display
	memory  *memory
	meters  *meters

	failing failing
	oddOnce sync.Once   // whether an implausible wait was reported
	bounds  atomic.Bool // prompts have a bound that the user has not set, and no notice said so yet
}

// options returns the options for the run's calls.
func (c *calls) options() []batch.Option {
	opts := []batch.Option{
		batch.WithMaxAttempts(c.Flags.MaxAttempts),
		batch.WithAttemptTimeout(c.Flags.Timeout),
		batch.WithItemTimeout(c.Flags.ItemTimeout),
		batch.WithSeed(c.Seed()),
		batch.WithClock(c.Clock),
		batch.WithLongWait(c.Flags.LongWait),
		batch.WithFirstAnswer(c.Flags.FirstAnswer),
	}
	if c.log.Logger != nil && (c.Flags.Ctl == settings.CtlOn || c.log.Enabled(context.Background(), slog.LevelDebug)) { // another main may set its log later
		opts = append(opts, batch.WithRetryHook(c.log.logRetry))
	}
	opts = append(opts, c.endOptions()...)
	opts = append(opts, c.Flags.LaneOptions()...)
	return append(opts, c.memory.options()...)
}

// tiers returns the options of --service-tier auto. The items of each quota get a lane of the flex tier and,
// behind it, one of the standard tier.
func (c *calls) tiers(plan *promptfile.Plan) (opts []batch.Option) {
	if c.Flags.ServiceTier != settings.TierAuto {
		return nil
	}
	for _, w := range plan.Work {
		_, quota, _ := strings.Cut(w.Lane, "/")
		opts = append(opts, batch.WithPrefer(w.Lane, c.Flags.Spill, []string{settings.FlexLane(c.Account.Name) + "/" + quota}, []string{w.Lane}))
	}
	return opts
}

// call makes one call of one item.
func (c *calls) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	return c.callOn(ctx, it, batch.LaneFrom(ctx))
}

// callOn makes one call of one item on a lane. It logs and counts the call if the flags want that.
func (c *calls) callOn(ctx context.Context, it *promptfile.Item, lane string) (provider.Reply, error) {
	request := it.Asks()
	request.Lane = lane
	c.noteBound(it)
	logsCall := c.log.Enabled(ctx, slog.LevelDebug)
	if !logsCall && c.meters.genAI == nil {
		reply, err := c.Account.Do(ctx, request)
		c.noteFault(it, err)
		return reply, err
	}
	began := c.Clock.Now()
	reply, err := c.Account.Do(ctx, request)
	took := c.Clock.Now().Sub(began)
	c.noteFault(it, err)
	if logsCall {
		c.log.logCall(ctx, it, &reply, took, err)
	}
	if c.meters.genAI != nil {
		c.meters.countCall(&request, &reply, took, err)
	}
	return reply, err
}

// noteBound says once that a prompt has a bound on its answer that the user has not set.
func (c *calls) noteBound(it *promptfile.Item) {
	if !c.bounds.Load() || !it.Form.IsPrompt() || estimate.MaxOutput(it.Body) > 0 || !c.bounds.Swap(false) {
		return
	}
	c.show.console.Notice(event.MaxTokens, fmt.Sprintf("prompts without max_tokens get %s, as %s requires a max_tokens: --max-tokens sets another",
		words.Thousands(float64(c.Flags.MaxTokens)), c.Account.Name))
}

// failing holds the items whose calls break and that have not ended. Workers note them.
type failing struct {
	mu         sync.Mutex
	items      map[string]int // calls that broke, by the item's id
	isReported bool
}

// note counts a broken call of an item. It reports whether the item has had enough of them for a notice.
func (f *failing) note(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isReported || f.items[id] == 0 && len(f.items) >= verdict.MostFailing {
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

// countIfDue returns how many items keep failing, and reports whether the notice about them is due. It is due
// only once.
func (f *failing) countIfDue(p *observe.Snapshot) (items int, isDue bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.items {
		if calls >= verdict.FailingCalls {
			items++
		}
	}
	// with a breaker open, or few others answered, the server may be to blame
	isDue = !f.isReported && p.Open+p.HalfOpen == 0 && p.Answered >= verdict.FailingFew*items
	f.isReported = f.isReported || isDue
	return items, isDue
}

// noteFailing counts a broken call. It shows a notice, once, if items keep failing while others are answered.
func (c *calls) noteFailing(it *promptfile.Item, e *provider.Error) {
	if c.show.recorder == nil || !e.Kind.BreakerCounts() || e.Kind.Cools() || !c.failing.note(it.ID) {
		return
	}
	snapshot := c.show.recorder.Snapshot(c.Clock.Now())
	if items, isDue := c.failing.countIfDue(&snapshot); isDue {
		text := fmt.Sprintf("%s so far while the rest are answered: %s", keepFailingText(items), c.verdict.FailedAs(it.ID, verdict.FailingCalls, e))
		if items > 1 {
			text += ", and so on"
		}
		c.show.console.Notice(event.Failing, text)
	}
}

// keepFailingText says that the calls of items keep breaking. The items have not ended, as a later
// call may still be answered.
func keepFailingText(items int) string {
	if items == 1 {
		return "1 item keeps failing"
	}
	return words.Count(items, "item") + " keep failing"
}

// alikeFailures is the number of items that may fail alike, of a model that was never
// answered, before the run stops. That many tell a mistake in every line from one that a few
// lines share.
const alikeFailures = 20

// endOptions returns the options that decide when failing calls stop the run.
func (c *calls) endOptions() []batch.Option {
	opts := []batch.Option{batch.WithOutagePatience(c.Flags.OutagePatience)}
	if c.Flags.KeepGoing {
		opts = append(opts, batch.WithKeepGoing())
	} else {
		opts = append(opts, batch.WithAlikeFailures(alikeFailures))
	}
	if c.memory.answeredBefore {
		opts = append(opts, batch.WithAnsweredBefore())
	}
	return append(opts, c.Flags.MaxFailures.Options()...)
}

// troubles records the breakers that opened during a run. Only the observer uses it until
// the run is over.
type troubles struct {
	opened int                 // the number of times
	why    string              // why calls broke, the latest time
	stops  []event.StoppedLane // of a file with lanes
}

// explainCauses returns the event with the causes of broken calls in words. It also records breakers that
// open and lanes that stop.
func (d *display) explainCauses(e batch.Event) batch.Event {
	if e.Transition != nil {
		transition := *e.Transition // others get the same event
		transition.Cause = d.Reason(transition.Cause)
		if transition.Reason == machine.ByBreaker && transition.To == machine.Cooling {
			d.troubles.opened++
			d.troubles.why = verdict.ReasonOf(transition.Cause)
		}
		if transition.To == machine.Stopped && d.Flags.Fleet != nil {
			d.troubles.stops = append(d.troubles.stops, d.stopOf(transition.Lane, transition.Cause))
		}
		e.Transition = &transition
	}
	return e
}

// stopOf says why a lane of the file has stopped, and what to do about it. The account is that
// which has stopped with all its lanes; "": the lane alone has.
func (d *display) stopOf(lane string, cause error) event.StoppedLane {
	stop := event.StoppedLane{Lane: lane, Cause: verdict.ReasonOf(cause), Advice: d.verdict.LaneAdvice(lane, cause)}
	if why := new(machine.AccountError); errors.As(cause, &why) && why.Shared() {
		stop.Account, stop.Cause = why.Account, d.Redact(verdict.ReasonOf(why.Cause))
	}
	return stop
}

// noteFault records a call that was not answered. It shows a notice, once, if a server asks for an
// implausible wait.
func (c *calls) noteFault(it *promptfile.Item, err error) {
	e := verdict.FaultOf(err)
	if e == nil {
		return
	}
	c.verdict.Latest.Store(e)
	c.noteFailing(it, e)
	if e.OddWait != "" {
		c.oddOnce.Do(func() {
			c.show.console.Notice(event.OddWait, fmt.Sprintf("the provider asks for an absurd wait (%s), which is ignored", verdict.Shown(c.Redact(e.OddWait))))
		})
	}
}
