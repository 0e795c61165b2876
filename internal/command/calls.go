package command

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// options returns the options of the run's calls.
func (r *runner) options() []batch.Option {
	seed := r.chance
	if r.flags.seeded {
		seed = r.flags.seed
	}
	answers := r.flags.whoAnswers(r.flags.preset)
	opts := []batch.Option{
		batch.WithLimits(r.flags.limits()),
		batch.WithCharge(answers.Charge),
		batch.WithPeriods(answers.Periods),
		batch.WithMaxAttempts(r.flags.maxAttempts),
		batch.WithAttemptTimeout(r.flags.timeout),
		batch.WithItemTimeout(r.flags.itemTimeout),
		batch.WithSeed(seed),
		batch.WithClock(r.clock),
		batch.WithLongWait(r.flags.longWait),
		batch.WithFirstAnswer(r.flags.firstAnswer),
	}
	if r.log != nil && r.log.Enabled(context.Background(), slog.LevelDebug) { // another main may set its log later
		opts = append(opts, batch.WithRetryHook(r.logRetry))
	}
	opts = append(opts, r.endOptions()...)
	opts = append(opts, r.flags.lawOptions()...)
	opts = append(opts, r.flags.lanes.options(r.flags.law)...)
	return append(opts, r.stateOptions()...)
}

// call makes one call of one item.
func (r *runner) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	asks := it.Asks()
	asks.Lane = batch.LaneFrom(ctx)
	r.sayBound(it)
	if !r.log.Enabled(ctx, slog.LevelDebug) {
		reply, err := r.backend.do(ctx, asks)
		r.noteFault(it, err)
		return reply, err
	}
	began := r.clock.Now()
	reply, err := r.backend.do(ctx, asks)
	r.noteFault(it, err)
	r.logCall(ctx, it, &reply, r.clock.Now().Sub(began), err)
	return reply, err
}

// sayBound says once that a prompt has a bound on its answer that the user has not set.
func (r *runner) sayBound(it *promptfile.Item) {
	if !r.bounds.Load() || !it.Form.IsPrompt() || estimate.MaxOutput(it.Body) > 0 || !r.bounds.Swap(false) {
		return
	}
	r.console.Notice(event.MaxTokens, fmt.Sprintf("prompts without max_tokens get %s, as %s requires a max_tokens: --max-tokens sets another",
		words.Thousands(float64(r.flags.maxTokens)), r.backend.name))
}

// redact removes the key from a text. The code that made the text should have done so: this
// is the second lock on that door.
func (r *runner) redact(s string) string {
	return provider.RedactText(s, r.backend.secrets()...)
}

func (r *runner) redactError(err error) string {
	if err == nil {
		return ""
	}
	return r.redact(err.Error())
}
