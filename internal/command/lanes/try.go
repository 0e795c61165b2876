package lanes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
)

// mostTries bounds the lanes that are tried at once: as many sockets as any system gives.
const mostTries = 16

// A Trial is the outcome of one call of a lane.
type Trial struct {
	Status, Why, Limits string
	Took                time.Duration
	Answered            bool
	Err                 error // why the call has failed; nil: it was answered, or not sent
}

// tryAll makes a call on each lane, and prints a table of what came of it.
func tryAll(ctx context.Context, w *world.World, flags *settings.Flags, out io.Writer) error {
	all, err := account.Connect(ctx, w, flags)
	if err != nil {
		return err
	}
	defer all.Fleet.CloseIdle()
	var calls sync.WaitGroup
	trials, slots := make([]Trial, len(all.Lanes)), make(chan struct{}, mostTries)
	for i, lane := range all.Lanes {
		calls.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			trials[i] = Try(ctx, w, lane, lane.Spec.Flags, ModelsOf(lane.Spec, flags.DefaultModel()))
		})
	}
	calls.Wait()
	fmt.Fprintln(out)
	rows, failed := [][]string{{"LANE", "STATUS", "LATENCY", "LIMITS TOLD", "ORGANISATION"}}, 0
	for i, t := range trials {
		rows = append(rows, []string{all.Lanes[i].Spec.Name, t.Status, words.Wait(t.Took), t.Limits, orUnknown(printable.Line(all.Lanes[i].Organisation()))})
		if !t.Answered {
			failed++
		}
	}
	printTable(out, rows)
	for i, t := range trials {
		if t.Why != "" {
			fmt.Fprintf(out, "%s: %s\n", all.Lanes[i].Spec.Name, provider.RedactText(t.Why, all.Secrets()...))
		}
	}
	all.SayShared(func(_ event.Code, text string) { fmt.Fprintln(out, text) })
	if failed > 0 {
		return exit.End(exit.ItemsFailed, "%s not answered", words.Count(failed, "lane")+words.OneOr(failed, " was", " were"))
	}
	return nil
}

// orUnknown returns the text, or words for its absence.
func orUnknown(text string) string {
	if text == "" {
		return "not told"
	}
	return text
}

// Try makes the shortest call that a lane with these flags takes, for its first model.
func Try(ctx context.Context, w *world.World, lane *account.Account, flags *settings.Flags, models []string) (t Trial) {
	t.Limits = orUnknown("")
	request, err := shortestRequest(lane.Name, flags, models)
	if err != nil {
		t.Status, t.Why = "not tried", err.Error()
		return t
	}
	if limit := flags.Timeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, recorder := provider.WithRecorder(ctx)
	began := w.Clock.Now()
	reply, err := lane.Do(ctx, request)
	t.Took = w.Clock.Now().Sub(began)
	record := recorder.Snapshot()
	if reply.Done != nil {
		reply.Done()
	}
	t.Limits = advertisedLimits(record.Limits)
	if t.Answered = err == nil; t.Answered {
		t.Status = strconv.Itoa(reply.Status)
		return t
	}
	t.Status, t.Why, t.Err = "no answer", exit.PlainText(err), err
	if e, is := errors.AsType[*provider.Error](err); is {
		if e.Status > 0 {
			t.Status = strconv.Itoa(e.Status)
		}
		t.Why = words.Clip(printable.Line(exit.PlainText(e)), 300) // a sentence or two of the server's
	}
	return t
}

// shortestRequest returns a request for one token of the first model, in a form that the lane takes.
func shortestRequest(name string, f *settings.Flags, models []string) (r provider.Request, err error) {
	switch {
	case len(models) == 0 && f.Provider == settings.ProviderSim:
		models = []string{settings.SimDefaultModel}
	case len(models) == 0:
		return r, errors.New("no model is known: add --model NAME, or models to the lane")
	}
	r.Model, r.MaxTokens = models[0], 1
	body := map[string]any{"model": r.Model}
	switch served := f.Serves(); {
	case slices.Contains(served, provider.Chat):
		r.Endpoint = provider.Chat
		body["messages"] = []map[string]string{{"role": "user", "content": "Hi"}}
		if bound := "max_tokens"; f.IsOpenAIShaped() && f.Name() != settings.ProviderOpenAI {
			body[bound] = 1
		} else { // OpenAI's newer models know no other word, and translations read it
			body["max_completion_tokens"] = 1
		}
	case slices.Contains(served, provider.Embeddings):
		r.Endpoint, body["input"] = provider.Embeddings, "Hi"
	default:
		return r, fmt.Errorf("%s has neither chats nor embeddings", name)
	}
	r.Body, err = json.Marshal(body)
	return r, err
}

// advertisedLimits shows the limits that an answer tells.
func advertisedLimits(limits []provider.RateLimit) string {
	var parts []string
	for _, l := range limits {
		parts = append(parts, fmt.Sprintf("%s of %s %s left", words.Thousands(l.Remaining), words.Thousands(l.Limit), l.On))
	}
	return orUnknown(strings.Join(parts, ", "))
}
