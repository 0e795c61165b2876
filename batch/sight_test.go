package batch

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A limit named in a refusal counts if it can be true: its period must be known, and not
// more used than there is. The remainder is the limit less the used units.
func TestNotedLimits(t *testing.T) {
	good := provider.QuotaNote{On: "requests", Limit: 100, Used: 40, Per: "minute"}
	for on := range dimensions {
		if dimensions[on] == limiter.Requests {
			good.On = on
		}
	}
	for per := range periods {
		if periods[per] == time.Minute {
			good.Per = per
		}
	}
	seen, ok := noted(good)
	if !ok || seen.Dimension != limiter.Requests || seen.Limit != 100 || seen.Remaining != 60 || seen.Window != time.Minute || !seen.Said {
		t.Errorf("%+v: %+v, %v", good, seen, ok)
	}
	for name, wrong := range map[string]func(*provider.QuotaNote){
		"no limit":     func(q *provider.QuotaNote) { q.Limit = 0 },
		"less is used": func(q *provider.QuotaNote) { q.Used = -1 },
		"more is used": func(q *provider.QuotaNote) { q.Used = 101 },
	} {
		q := good
		if wrong(&q); q == good {
			t.Fatal("nothing is wrong")
		}
		if seen, ok := noted(q); ok || seen.Limit != 0 {
			t.Errorf("%s: %+v, %v", name, seen, ok)
		}
	}
}
