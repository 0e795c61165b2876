package main

import (
	"context"
	"log/slog"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/provider"
)

// options are how the calls are made.
func (r *runner) options() []batch.Option {
	seed := r.chance
	if r.flags.seeded {
		seed = r.flags.seed
	}
	opts := []batch.Option{
		batch.WithLimits(r.flags.limits()),
		batch.WithMaxAttempts(r.flags.maxAttempts),
		batch.WithAttemptTimeout(r.flags.timeout),
		batch.WithItemTimeout(r.flags.itemTimeout),
		batch.WithSeed(seed),
		batch.WithClock(r.clock),
		batch.WithLongWait(r.flags.longWait),
		batch.WithFirstAnswer(r.flags.firstAnswer),
	}
	opts = append(opts, r.flags.lawOptions()...)
	opts = append(opts, r.flags.lanes.options()...)
	return append(opts, r.stateOptions()...)
}

// call makes one call of one item.
func (r *runner) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	if !r.log.Enabled(ctx, slog.LevelDebug) {
		reply, err := r.backend.do(ctx, it.Asks())
		r.noteFault(err)
		return reply, err
	}
	began := r.clock.Now()
	reply, err := r.backend.do(ctx, it.Asks())
	r.noteFault(err)
	r.logCall(ctx, it, &reply, r.clock.Now().Sub(began), err)
	return reply, err
}

// redact takes the key out of a text. Whoever made the text should have: this is
// the second lock on that door.
func (r *runner) redact(s string) string {
	return string(provider.Redact([]byte(s), r.backend.key))
}

func (r *runner) redactError(err error) string {
	if err == nil {
		return ""
	}
	return r.redact(err.Error())
}
