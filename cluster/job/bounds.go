package job

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds are those at which a job's user has it stop. The zero value has none.
type Bounds struct {
	Deadline time.Time `json:"deadline,omitzero"`  // by the clock of the machine that submitted it
	Failures int       `json:"failures,omitempty"` // items that have failed, in a round
	Share    float64   `json:"share,omitempty"`    // likewise, of those that have ended
}

// shareFrom is of how many items that have ended a share is taken at least, as of a run of one process.
const shareFrom = 100

// Counts reports whether the job's failures are to be counted.
func (b *Bounds) Counts() bool { return b.Failures > 0 || b.Share > 0 }

// Reached says which bound a job has reached of whose items so many have ended and failed; "" is none.
func (b *Bounds) Reached(now time.Time, ended, failed int) string {
	switch {
	case !b.Deadline.IsZero() && !now.Before(b.Deadline):
		return "its deadline (--deadline) was reached, at " + b.Deadline.UTC().Format(time.RFC3339)
	case b.Failures > 0 && failed >= b.Failures:
		return fmt.Sprintf("%d items have failed, and --max-failures is %d", failed, b.Failures)
	case b.Share > 0 && ended >= shareFrom && float64(failed) >= b.Share*float64(ended):
		return fmt.Sprintf("%d of %d items have failed, and --max-failures is %s%%", failed, ended, strconv.FormatFloat(100*b.Share, 'g', 6, 64)) //nolint:mnd // six digits, as in the command
	}
	return ""
}
