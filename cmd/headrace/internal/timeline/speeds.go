package timeline

import (
	"time"

	"github.com/headrace/headrace/observe"
)

// speedSpan is what the speeds are of at most, a second for each of their spans at least.
const speedSpan = 10 * time.Minute

// speeds spreads the items of each sample evenly over its time.
func speeds(samples []observe.Sample, n int) (perSecond []float64, span time.Duration) {
	if len(samples) == 0 {
		return nil, 0
	}
	latest := samples[len(samples)-1]
	first := samples[0]
	all := min(speedSpan.Seconds(), latest.At.Sub(first.At).Seconds()+first.Span)
	n = max(1, min(n, int(all)))
	items, width := make([]float64, n), all/float64(n)
	for _, s := range samples {
		end := all - latest.At.Sub(s.At).Seconds()
		spread(items, width, end-s.Span, end, float64(s.Answered+s.Failed))
	}
	for i := range items {
		items[i] /= width
	}
	return items, time.Duration(all * float64(time.Second))
}

// spread adds what happened between two moments to spans of that width.
func spread(to []float64, width, from, end, count float64) {
	for i := range to {
		begin := width * float64(i)
		if both := min(end, begin+width) - max(from, begin); both > 0 && end > from && width > 0 {
			to[i] += count * both / (end - from)
		}
	}
}
