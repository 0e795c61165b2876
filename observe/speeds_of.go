package observe

import "time"

// SpeedsOf returns what [Recorder.Speeds] would return for the run that the samples are from.
// They are the run's latest, oldest first. The items that ended in a sample are spread evenly
// over its time.
func SpeedsOf(samples []Sample, n int) (perSecond []float64, span time.Duration) {
	if len(samples) == 0 {
		return nil, 0
	}
	latest := &samples[len(samples)-1]
	lasted := time.Duration(latest.Elapsed * float64(time.Second))
	if n = min(n, int(lasted/leastOf)); n <= 0 {
		return nil, 0
	}
	span = min(lasted, sparkSpan(time.Duration(n)*cellSpan))
	ended, width := make([]float64, n), span.Seconds()/float64(n)
	for _, s := range samples {
		end := span.Seconds() - latest.At.Sub(s.At).Seconds()
		spread(ended, width, end-s.Span, end, float64(s.Answered+s.Failed))
	}
	for k := range ended {
		ended[k] /= width
	}
	return ended, span
}

// spread adds what happened between two moments to spans of that width.
func spread(to []float64, width, from, end, count float64) {
	for k := range to {
		begin := width * float64(k)
		if both := min(end, begin+width) - max(from, begin); both > 0 {
			to[k] += count * both / (end - from)
		}
	}
}
