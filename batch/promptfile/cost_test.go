package promptfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// flat is a price of a dollar a token for all models but those without one.
func flat(model string, u provider.Usage) (float64, bool) {
	return float64(u.InputTokens + u.OutputTokens), model != "unpriced"
}

// uses is a call that tells what it has used, and then what came of it.
func uses(tokens int64, err error) func(context.Context, *Item) (provider.Reply, error) {
	return func(ctx context.Context, _ *Item) (provider.Reply, error) {
		if tokens > 0 {
			provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: tokens})
		}
		if err != nil {
			return provider.Reply{}, err
		}
		return good, nil
	}
}

// pay runs the desk's file with these calls, in their order for each item.
func (d *jobFixture) pay(calls map[string][]func(context.Context, *Item) (provider.Reply, error), opts ...batch.Option) (sums Sums) {
	d.t.Helper()
	d.cfg.Concurrency = 1
	synctest.Test(d.t, func(t *testing.T) {
		job, tries := d.open(), map[string]int{}
		sums, _ = job.Run(t.Context(), func(ctx context.Context, it *Item) (provider.Reply, error) {
			tries[it.ID]++
			return calls[it.ID][tries[it.ID]-1](ctx, it)
		}, opts...)
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	})
	return sums
}

// costsIn returns the costs that the lines of a file name, by id; null means that the field is missing.
func costsIn(t *testing.T, path string) map[string]any {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	costs := map[string]any{}
	for line := range bytes.Lines(text) {
		var l struct {
			ID       string         `json:"custom_id"`
			Headrace map[string]any `json:"headrace"`
		}
		must.Do(t, json.Unmarshal(line, &l))
		costs[l.ID] = l.Headrace["cost_usd"]
	}
	return costs
}

// Each line says what all tries at its item have cost. What has no price has no such field,
// which is not a cost of 0; nor has what failed and used nothing.
func TestCostOfLines(t *testing.T) {
	broke := &provider.Error{Kind: provider.EmptyAnswer, Status: 200}
	refused := batch.Permanent(errors.New("no"))
	d := newFixture(t, ask("once"), ask("again"), ask("failed"), ask("unused"), ask("silent"),
		`{"id":"unpriced","prompt":"p","model":"unpriced"}`, `{"id":"free","prompt":"p","model":"free"}`,
		`{"id":"unpriced-failed","prompt":"p","model":"unpriced"}`, `{"id":"absurd","prompt":"p","model":"absurd"}`)
	d.cfg.Price = func(model string, u provider.Usage) (float64, bool) {
		switch model {
		case "free":
			return 0, true
		case "absurd":
			return math.Inf(1), true
		}
		usd, ok := flat(model, u)
		return usd, ok && u != provider.Usage{}
	}
	type call = func(context.Context, *Item) (provider.Reply, error)
	sums := d.pay(map[string][]call{
		"once": {uses(3, nil)}, "again": {uses(5, broke), uses(7, nil)}, "failed": {uses(11, broke), uses(13, refused)},
		"unused": {uses(0, refused)}, "silent": {uses(0, nil)}, "unpriced": {uses(17, nil)}, "free": {uses(19, nil)},
		"unpriced-failed": {uses(23, refused)}, "absurd": {uses(29, nil)},
	})
	results, failures := costsIn(t, d.out), costsIn(t, journal.ErrorsPath(d.out))
	if got, want := fmt.Sprint(results), "map[absurd:<nil> again:12 free:0 once:3 silent:<nil> unpriced:<nil>]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(failures), "map[failed:24 unpriced-failed:<nil> unused:<nil>]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text, err := os.ReadFile(d.out); err != nil || !bytes.Contains(text, []byte(`"cost_usd":0,`)) || bytes.Count(text, []byte("cost_usd")) != 3 {
		t.Errorf("%v: %s", err, text)
	}
	if sums.CostUSD != 39 || sums.Priced != 4 || sums.Unpriced != 4 {
		t.Errorf("%v, %d with and %d without a price", sums.CostUSD, sums.Priced, sums.Unpriced)
	}
	if p := d.progress(); p.CostUSD != 39 || p.FailedUSD != 24 || p.Priced != 4 || p.Unpriced != 4 {
		t.Errorf("%+v", p)
	}
}

// A cost that nobody can pay is none: with it the sums would be no numbers, which no JSON can
// tell.
func TestCostsThatAreNone(t *testing.T) {
	for _, absurd := range []float64{math.MaxFloat64, math.Inf(1), math.NaN(), -1} {
		d := newFixture(t, ask("a"), ask("b"), ask("c"))
		d.cfg.Price = func(_ string, u provider.Usage) (float64, bool) {
			if u.InputTokens == 3 {
				return 7, true
			}
			return absurd, true
		}
		type call = func(context.Context, *Item) (provider.Reply, error)
		sums := d.pay(map[string][]call{"a": {uses(1, nil)}, "b": {uses(2, nil)}, "c": {uses(3, nil)}})
		if p := d.progress(); sums.CostUSD != 7 || sums.Unpriced != 2 || p.CostUSD != 7 || p.Unpriced != 2 {
			t.Errorf("%v: %+v, in the files %+v", absurd, sums, p)
		}
		if got := fmt.Sprint(costsIn(t, d.out)); got != "map[a:<nil> b:<nil> c:7]" {
			t.Errorf("%v: %s", absurd, got)
		}
	}
}

// What an item has used that was not run in the end is spent as well, though it has no line.
func TestCostOfWhatWasNotRun(t *testing.T) {
	d := newFixture(t, ask("b"), ask("a"))
	d.cfg.Price = flat
	type call = func(context.Context, *Item) (provider.Reply, error)
	quota := &provider.Error{Kind: provider.QuotaExhausted, Status: 429}
	sums := d.pay(map[string][]call{"a": {uses(3, &provider.Error{Kind: provider.EmptyAnswer, Status: 200}), uses(0, quota)}, "b": {uses(5, nil)}})
	if p := d.progress(); sums.NotRun != 1 || sums.CostUSD != 8 || sums.Priced != 2 || sums.Unpriced != 0 || p.CostUSD != 5 {
		t.Errorf("%+v, in the files %+v", sums, p)
	}
}

// Whatever comes of the calls, in whichever order lines stand, and however often the run is
// stopped: the lines add up to what the runs say, but for what was spent on items that were
// not run in the end, and to what the files are found to hold.
func TestCostsAddUp(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
		var lines []string
		for n := range 150 {
			lines = append(lines, fmt.Sprintf(`{"id":"%d","prompt":"p","model":%q}`, n, []string{"m", "n", "unpriced"}[rng.IntN(3)]))
		}
		d := newFixture(t, lines...)
		d.cfg.InputOrder, d.cfg.Concurrency = seed%2 == 1, 8
		d.cfg.Price = func(model string, u provider.Usage) (float64, bool) {
			return math.Round(float64(u.InputTokens)*0.15e6+float64(u.OutputTokens)*0.6e6) / 1e12, model != "unpriced"
		}
		spent, lost, priced, unpriced := 0.0, 0.0, 0, 0
		for runs := 0; ; runs++ {
			sums := d.payAtRandom(rng, runs < 3, &lost)
			spent, priced, unpriced = spent+sums.CostUSD, priced+sums.Priced, unpriced+sums.Unpriced
			if sums.NotRun == 0 && sums.Items()+sums.EarlierDone+sums.EarlierFailed == len(lines) { // one that was drained may have taken none that it did not run
				break
			}
		}
		inLines, with := 0.0, 0
		for _, path := range []string{d.out, journal.ErrorsPath(d.out)} {
			for _, cost := range costsIn(t, path) {
				if usd, ok := cost.(float64); ok {
					inLines, with = inLines+usd, with+1
				}
			}
		}
		p := d.progress()
		if math.Abs(inLines+lost-spent) > 1e-12 || math.Abs(p.CostUSD-inLines) > 1e-12 || p.Priced != with || priced < with || p.Done+p.Failed != 150 || inLines == 0 {
			t.Fatalf("seed %d: %v in %d lines, %v lost, and the runs say %v of %d and %d without a price; in the files %+v", seed, inLines, with, lost, spent, priced, unpriced, p)
		}
		if p.Unpriced > unpriced || p.Priced+p.Unpriced > 150 {
			t.Fatalf("seed %d: %d and %d without a price; in the files %+v", seed, priced, unpriced, p)
		}
	}
}

// payAtRandom runs the desk's file with calls that do as they like, and drains it somewhere
// if it is to be stopped. To lost is added what items have cost
// that were not run in the end.
func (d *jobFixture) payAtRandom(rng *rand.Rand, stop bool, lost *float64) (sums Sums) {
	d.t.Helper()
	synctest.Test(d.t, func(t *testing.T) {
		drain, calls := make(chan struct{}), make(chan *rand.Rand, 1)
		calls <- rng
		after := rng.IntN(80)
		d.cfg.Drain = drain
		job := d.open()
		sums, _ = job.Run(t.Context(), func(ctx context.Context, _ *Item) (provider.Reply, error) {
			r := <-calls
			u := provider.Usage{InputTokens: r.Int64N(5000) + 1, OutputTokens: r.Int64N(900)}
			luck, wait := r.IntN(10), time.Duration(r.IntN(1000))*time.Millisecond
			if after--; after == 0 && stop {
				close(drain)
			}
			calls <- r
			time.Sleep(wait)
			if luck > 1 {
				provider.RecorderFrom(ctx).Usage(u)
			}
			switch luck {
			case 0:
				return provider.Reply{}, &provider.Error{Kind: provider.Throttled, Status: 429}
			case 1, 2, 3:
				return provider.Reply{}, &provider.Error{Kind: provider.EmptyAnswer, Status: 200}
			case 4:
				return provider.Reply{}, batch.Permanent(errors.New("no"))
			}
			return good, nil
		}, batch.WithSeed(rng.Uint64()), batch.WithEnds(func(e batch.End) {
			r := <-calls
			if usd, ok := d.cfg.Price((*e.In.(**Item)).Model, e.Usage); ok && errors.Is(e.Err, batch.ErrNotRun) {
				*lost += usd
			}
			calls <- r
		}))
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	})
	return sums
}

// A run that knows no price writes what it wrote before there were any.
func TestWithoutPricesNothingIsWritten(t *testing.T) {
	var files [2]string
	for i, price := range []func(string, provider.Usage) (float64, bool){nil, func(string, provider.Usage) (float64, bool) { return 5, false }} {
		d := newFixture(t, ask("a"), ask("b"))
		d.cfg.Price = price
		sums, _, err := d.run()
		text, _ := os.ReadFile(d.out)
		if files[i] = string(text); err != nil || sums.CostUSD != 0 || sums.Priced != 0 || sums.Unpriced != 2 {
			t.Errorf("%v, %+v", err, sums)
		}
	}
	const want = `"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0},"queued_ms":0`
	if files[0] != files[1] || !bytes.Contains([]byte(files[0]), []byte(want)) || bytes.Contains([]byte(files[0]), []byte("cost")) {
		t.Errorf("%s\n%s", files[0], files[1])
	}
}

// To keep a cost allocates once for many lines, and no two lines share one.
func TestCostsAreKeptApart(t *testing.T) {
	m := NewMaker(Config{Price: func(_ string, u provider.Usage) (float64, bool) { return float64(u.InputTokens), true }})
	item := &Item{}
	keep := func(n int) *float64 {
		cost, _ := m.countCost(&Result{Item: item, Usage: provider.Usage{InputTokens: int64(n)}}, &Sums{})
		return cost
	}
	seen := map[*float64]bool{}
	for n := range 3 * costsAtOnce {
		p := keep(n)
		if seen[p] || *p != float64(n) {
			t.Fatalf("%d is kept where another is", n)
		}
		seen[p] = true
	}
	if n := testing.AllocsPerRun(10*costsAtOnce, func() { keep(1) }); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

// A call that broke counts against the cap of later runs as well: its line says what it may cost.
func TestDoubtfulOfEarlierRuns(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"))
	d.cfg.Price = flat
	d.cfg.Reserve = func(string, float64, float64) (float64, bool) { return 600, true }
	type call = func(context.Context, *Item) (provider.Reply, error)
	broken := func(ctx context.Context, _ *Item) (provider.Reply, error) {
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 1})
		provider.RecorderFrom(ctx).Cut()
		return provider.Reply{}, &provider.Error{Kind: provider.TransportFault, Message: "cut"}
	}
	calls := map[string][]call{"a": {broken, uses(3, nil)}, "b": {uses(5, nil)}}
	d.cfg.MaxCost, d.cfg.Reader.Limit = 3000, 1
	d.pay(calls)
	d.cfg.MaxCost, d.cfg.Reader.Limit = 1000, 0
	if sums := d.pay(calls); sums.Money.Doubtful.USD() != 600 || sums.Money.Spent.USD() != 3 || sums.OverBudget == nil {
		t.Errorf("the next run: %+v, %v", sums.Money, sums.OverBudget)
	}
}
