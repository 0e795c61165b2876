package run

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// The run gets the time to wait for a first answer.
func TestFirstAnswerReachesTheRun(t *testing.T) {
	w := &world.World{Clock: clockwork.NewRealClock()}
	r := newRunner(&verdict.Facts{World: w, Flags: &settings.Flags{FirstAnswer: 42 * time.Second}, Halt: &world.Halt{}})
	for _, o := range r.calls.options() {
		if o.String() == "WithFirstAnswer(42s)" {
			return
		}
	}
	t.Error("it is not")
}

// What is done for each call that was answered, and for its item, allocates nothing.
func TestAnswersAreWatchedWithoutAllocation(t *testing.T) {
	item := &promptfile.Item{Request: prompts.Request{Model: "gpt-4o-mini", Body: []byte("{}")}}
	used := provider.Usage{InputTokens: 61, OutputTokens: 14}
	known := must.Get(price.Read("", "", "openai"))(t)
	r := newRunner(&verdict.Facts{World: &world.World{Clock: clockwork.NewFakeClock()}, Flags: &settings.Flags{}})
	r.Flags.Known = known
	for what, f := range map[string]func(){
		"an answer": func() { r.calls.noteFault(nil, nil) },
		"a size":    func() { sizeOf(&item) },
		"a price":   func() { r.show.priceOf(&item, "", used) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

// What happens to the input is said, and what fails is counted.
func TestWhatHappensToTheInputIsSaid(t *testing.T) {
	var said strings.Builder
	r := newRunner(&verdict.Facts{World: &world.World{}, Halt: new(world.Halt), Account: new(account.Account)})
	r.show.console, r.log.Logger = progress.Open(progress.Plain(&said), time.Now), slog.New(slog.DiscardHandler)
	w := r.watchJob("in.jsonl")
	w.Checked(3_000_000)
	w.Broke(errors.New("the pipe broke"))
	w.Skipped(&prompts.LineError{Line: 2, Err: errors.New("no")})
	w.Ended(&promptfile.Result{Item: new(promptfile.Item), Err: errors.New("no")})
	w.Ended(&promptfile.Result{Item: new(promptfile.Item)})
	r.show.console.Close(nil)
	for _, want := range []string{"checking in.jsonl before any call: 3000000 items so far", "the pipe broke (reading stops here;"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in %s", want, said.String())
		}
	}
	if n := r.show.skipped.Load(); n != 1 {
		t.Errorf("%d skipped, not 1", n)
	}
}
