package promptfile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A job without Config.Cost estimates costs, and its lanes charge the greater of prompt and
// output, unless an option overrides that. Costs from Config.Cost are taken as they are.
func TestLanesOfAJobCharge(t *testing.T) {
	word := strings.Repeat("river ", 2000)
	line := func(i int) string {
		return fmt.Sprintf(`{"id":"%d","prompt":%q,"max_tokens":2000,"model":"m"}`, i, word)
	}
	took := func(cost func(*prompts.Request) batch.Cost, opts ...batch.Option) (d time.Duration) {
		var lines []string
		for i := range 31 {
			lines = append(lines, line(i))
		}
		desk := newDesk(t, lines...)
		desk.cfg.Cost = cost
		synctest.Test(t, func(t *testing.T) {
			if len(opts) > 0 && strings.HasPrefix(opts[0].String(), "WithShared") {
				shared, err := batch.NewShared(batch.WithPlainLaw(), batch.WithLimits(batch.Limits{TPM: 6000}))
				if err != nil {
					t.Fatal(err)
				}
				defer shared.Close()
				opts = []batch.Option{batch.WithShared(shared)}
			} else {
				opts = append([]batch.Option{batch.WithPlainLaw(), batch.WithLimits(batch.Limits{TPM: 6000})}, opts...)
			}
			sums, err := desk.open().Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) { return desk.answer(it) }, opts...)
			if err != nil || sums.Succeeded != 31 {
				t.Errorf("%v: %+v", err, sums.Summary)
			}
			d = sums.Elapsed
		})
		return d
	}
	both := limiter.Charge{Rule: limiter.ChargeBoth}
	asBoth := took(nil, batch.WithCharge(both))
	for name, tt := range map[string]struct {
		took time.Duration
		half bool
	}{
		"told nothing":            {took(nil), true},
		"both, by the lane":       {took(nil, batch.WithLaneDefaults(batch.LaneConfig{Charge: both})), false},
		"the prompt alone":        {took(nil, batch.WithCharge(limiter.Charge{Rule: limiter.ChargePromptOnly})), true},
		"lanes of another's":      {took(nil, batch.WithShared(nil)), false}, // who has said nothing: as told
		"told what it is to draw": {took(func(*prompts.Request) batch.Cost { return batch.Cost{Requests: 1, Input: 2000, Output: 2000} }), false},
	} {
		if share := tt.took.Seconds() / asBoth.Seconds(); tt.half != (share < 0.6) || !tt.half && (share < 0.9 || share > 1.1) {
			t.Errorf("%s: %v, and where both are charged %v", name, tt.took, asBoth)
		}
	}
}
