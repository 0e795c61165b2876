package observe

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Sparklines: how much of the run they show.
const (
	cellSpan = 15 * time.Second // that one cell shows, about
	leastOf  = time.Second      // at least: snapshots are no denser than that
)

// sparkSpans lists lengths of time that people have words for.
var sparkSpans = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
}

// Speeds returns the items that ended a second, in equal spans of the latest part of the run,
// oldest first. They make a sparkline of n cells: at most n of them, and fewer in a run's first
// n seconds. span is that of all together: about 15 s a cell, an hour at most, and no more
// than the run has lasted.
func (r *Recorder) Speeds(n int) (perSecond []float64, span time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.items.now()
	if n = min(n, int(now/leastOf)); n <= 0 {
		return nil, 0
	}
	span = min(now, sparkSpan(time.Duration(n)*cellSpan))
	perSecond = make([]float64, n)
	begin := r.items.at(now - span)
	for k := range perSecond {
		end := r.items.at(now - span + span*time.Duration(k+1)/time.Duration(n))
		perSecond[k] = (end - begin) / (span.Seconds() / float64(n))
		begin = end
	}
	return perSecond, span
}

// sparkSpan returns the length of time in sparkSpans that is nearest, as a ratio.
func sparkSpan(d time.Duration) time.Duration {
	return slices.MinFunc(sparkSpans, func(a, b time.Duration) int {
		return cmp.Compare(math.Abs(math.Log(a.Seconds()/d.Seconds())), math.Abs(math.Log(b.Seconds()/d.Seconds())))
	})
}

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
		spreadOver(ended, width, end-s.Span, end, float64(s.Answered+s.Failed))
	}
	for k := range ended {
		ended[k] /= width
	}
	return ended, span
}

// spreadOver distributes count, which happened evenly between two moments, over spans of that
// width.
func spreadOver(counts []float64, width, from, end, count float64) {
	for k := range counts {
		begin := width * float64(k)
		if both := min(end, begin+width) - max(from, begin); both > 0 {
			counts[k] += count * both / (end - from)
		}
	}
}
