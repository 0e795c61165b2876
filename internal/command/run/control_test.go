package run

import (
	"context"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
)

// A command that fails changes nothing: the next one names what stays.
func TestFailedCommandChangesNothing(t *testing.T) {
	c := &control{Facts: &verdict.Facts{Flags: &settings.Flags{}}, steers: batch.NewControl(), limitsOfAll: batch.Limits{RPM: 5}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the run has not begun, and the client has gone
	if _, err := c.setLimits(ctx, &ctl.Command{Limits: map[string]float64{"rpm": 9}}); err == nil || c.limitsOfAll.RPM != 5 {
		t.Errorf("%v, and the limits are %+v", err, c.limitsOfAll)
	}
}
