package measure

import "github.com/headrace/headrace/limiter/internal/parttest"

// The time, the chance and the comparisons of the tests, by short names.
var (
	noon             = parttest.Noon
	at, seeded, near = parttest.At, parttest.Seeded, parttest.Near
)
