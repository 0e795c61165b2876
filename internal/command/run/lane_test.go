package run

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/fleet"
)

// heard is a client that keeps the lanes of its calls.
type heard struct{ lanes []string }

func (h *heard) Do(_ context.Context, r provider.Request) (provider.Reply, error) {
	h.lanes = append(h.lanes, r.Lane)
	return provider.Reply{}, nil
}

func (h *heard) CloseIdle() {}

// A call tells the fleet the lane into which it was let, whether it is logged or not.
func TestCallsTellTheirLane(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelWarn} {
		client := &heard{}
		f := must.Get(fleet.New(fleet.Lane{Name: "only", Client: client}))(t)
		r := newRunner(&verdict.Facts{World: &world.World{Clock: clockwork.NewRealClock()}, Flags: &settings.Flags{}, Account: &account.Account{Fleet: f}})
		r.log.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
		items := slices.Values([]*promptfile.Item{{Request: prompts.Request{ID: "a"}}, {Request: prompts.Request{ID: "b"}}})
		results, err := batch.Run(t.Context(), items, r.calls.call, batch.WithConcurrency(1))
		if err != nil || len(client.lanes) != 2 {
			t.Fatal(err, client.lanes)
		}
		for i, one := range results {
			if one.Lane == "" || client.lanes[i] != one.Lane {
				t.Errorf("the lane is %q, and the call said %q", one.Lane, client.lanes[i])
			}
		}
	}
}
