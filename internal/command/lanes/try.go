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

// trial is the outcome of one call of a lane.
type trial struct {
	status, why, limits string
	took                time.Duration
	answered            bool
}

// tryAll makes a call for each lane, and prints what came of it.
func tryAll(ctx context.Context, w *world.World, flags *settings.Flags, out io.Writer) error {
	all, err := account.Connect(ctx, w, flags)
	if err != nil {
		return err
	}
	defer all.Fleet.CloseIdle()
	var calls sync.WaitGroup
	trials, room := make([]trial, len(all.Lanes)), make(chan struct{}, mostTries)
	for i, lane := range all.Lanes {
		calls.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			trials[i] = tryLane(ctx, w, lane, flags.DefaultModel())
		})
	}
	calls.Wait()
	fmt.Fprintln(out)
	rows, failed := [][]string{{"LANE", "STATUS", "LATENCY", "LIMITS TOLD", "ORGANISATION"}}, 0
	for i, t := range trials {
		rows = append(rows, []string{all.Lanes[i].Spec.Name, t.status, words.Wait(t.took), t.limits, orNone(printable.Line(all.Lanes[i].Organisation()))})
		if !t.answered {
			failed++
		}
	}
	printTable(out, rows)
	for i, t := range trials {
		if t.why != "" {
			fmt.Fprintf(out, "%s: %s\n", all.Lanes[i].Spec.Name, provider.RedactText(t.why, all.Secrets()...))
		}
	}
	all.SayShared(func(_ event.Code, text string) { fmt.Fprintln(out, text) })
	if failed > 0 {
		return exit.End(exit.ItemsFailed, "%s not answered", words.Count(failed, "lane")+words.OneOr(failed, " was", " were"))
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "not told"
	}
	return text
}

// tryLane makes the shortest call that a lane takes.
func tryLane(ctx context.Context, w *world.World, lane *account.Account, usual string) (t trial) {
	t.limits = orNone("")
	request, err := shortest(lane, usual)
	if err != nil {
		t.status, t.why = "not tried", err.Error()
		return t
	}
	if limit := lane.Spec.Flags.Timeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, recorder := provider.WithRecorder(ctx)
	began := w.Clock.Now()
	reply, err := lane.Do(ctx, request)
	t.took = w.Clock.Now().Sub(began)
	record := recorder.Snapshot()
	if reply.Done != nil {
		reply.Done()
	}
	t.limits = advertisedLimits(record.Limits)
	if t.answered = err == nil; t.answered {
		t.status = strconv.Itoa(reply.Status)
		return t
	}
	t.status, t.why = "no answer", exit.PlainText(err)
	if e, is := errors.AsType[*provider.Error](err); is {
		if e.Status > 0 {
			t.status = strconv.Itoa(e.Status)
		}
		t.why = words.Clip(printable.Line(exit.PlainText(e)), 300) // a sentence or two of the server's
	}
	return t
}

// shortest returns a request for one token of a lane's first model, in a form that the lane takes.
func shortest(lane *account.Account, usual string) (r provider.Request, err error) {
	models := modelsOf(lane.Spec, usual)
	f := lane.Spec.Flags
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
		return r, fmt.Errorf("%s has neither chats nor embeddings", lane.Name)
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
	return orNone(strings.Join(parts, ", "))
}
