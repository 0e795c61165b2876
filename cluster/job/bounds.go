package job

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds are the limits at which a job stops, as its user set them. The zero value has none.
type Bounds struct {
	Deadline time.Time `json:"deadline,omitzero"`  // by the clock of the machine that submitted it
	Failures int       `json:"failures,omitempty"` // items that have failed, in a round
	Share    float64   `json:"share,omitempty"`    // likewise, as a share of the items that have ended
}

// shareFrom is the least number of ended items for a share, as in a run of one process.
const shareFrom = 100

// Counts reports whether the job's failures must be counted.
func (b *Bounds) Counts() bool { return b.Failures > 0 || b.Share > 0 }

// Reached says which bound a job has reached, given its ended and failed items; "" is none.
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
