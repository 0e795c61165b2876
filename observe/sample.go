package observe

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// A Sample describes a span of a run. Counts are of the span, so that two neighbours merge by
// adding; of gauges it holds the mean, and the most.
type Sample struct {
	At      time.Time // its end
	Elapsed float64   // seconds since the run began, at its end
	Span    float64   // seconds

	Answered, Failed int // items
	Calls            int // that ended
	Throttled, Broke int // of these
	InputTokens      int64
	OutputTokens     int64
	CachedTokens     int64
	USD              float64
	Unpriced         int     // items
	InFlight         float64 // mean
	InFlightMost     int
	Waiting          float64      // mean of the items that waited, parked and delayed ones included
	Parked, Delayed  float64      // means
	Allowed          float64      // items a second that limits, windows and concurrency let through, mean; 0: not known
	AllowedSpan      float64      // seconds of the span for which it is known; 0 while Allowed is not: all of it
	Bounds           Ledger       // the span by what held the run back
	Latency          Buckets      // of answers
	Lanes            []LaneSample // the busiest, at most LanesInSample
}

// LanesInSample is the number of lanes that a sample keeps apart.
const LanesInSample = 4

// A LaneSample is one lane in a sample.
type LaneSample struct {
	Name      string             `json:"name"`
	Phase     string             `json:"phase"` // at the end of the span
	Answered  int                `json:"answered"`
	Throttled int                `json:"throttled"`
	Limits    map[string]float64 `json:"limits"` // by dimension: what it is believed to let through, units a second, at the end of the span
}

// Merge returns both spans as one; next is the later one. Counts, times and latencies add up.
// Gauges become the mean over both, and the most of either. Values at the end of a span are
// next's. A zero Sample changes nothing. So the order of merging does not matter, except for
// Lanes where more than LanesInSample take turns: each merge keeps the busiest.
func (s Sample) Merge(next Sample) Sample {
	sum := Sample{
		At: later(s.At, next.At), Elapsed: max(s.Elapsed, next.Elapsed), Span: s.Span + next.Span,
		Answered: s.Answered + next.Answered, Failed: s.Failed + next.Failed,
		Calls: s.Calls + next.Calls, Throttled: s.Throttled + next.Throttled, Broke: s.Broke + next.Broke,
		InputTokens: s.InputTokens + next.InputTokens, OutputTokens: s.OutputTokens + next.OutputTokens,
		CachedTokens: s.CachedTokens + next.CachedTokens,
		USD:          s.USD + next.USD, Unpriced: s.Unpriced + next.Unpriced,
		InFlightMost: max(s.InFlightMost, next.InFlightMost),
		Bounds:       s.Bounds.plus(&next.Bounds),
		Latency:      s.Latency.merge(next.Latency),
		Lanes:        mergeLanes(s.Lanes, next.Lanes),
	}
	mean := func(a, b float64) float64 { return ratio(a*s.Span+b*next.Span, s.Span+next.Span) }
	sum.InFlight, sum.Waiting = mean(s.InFlight, next.InFlight), mean(s.Waiting, next.Waiting)
	sum.Parked, sum.Delayed = mean(s.Parked, next.Parked), mean(s.Delayed, next.Delayed)
	sum.AllowedSpan = s.allowedSpan() + next.allowedSpan()
	sum.Allowed = ratio(s.Allowed*s.allowedSpan()+next.Allowed*next.allowedSpan(), sum.AllowedSpan)
	return sum
}

// allowedSpan returns the seconds of the span for which Allowed is known: all of them, if
// the sample names no other number.
func (s *Sample) allowedSpan() float64 {
	switch {
	case s.Allowed == 0:
		return 0
	case s.AllowedSpan == 0:
		return s.Span
	}
	return s.AllowedSpan
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// mergeLanes returns the sums of both by name, and keeps only the busiest lanes.
func mergeLanes(a, b []LaneSample) []LaneSample {
	sum := slices.Clone(a)
	for _, next := range b {
		k := slices.IndexFunc(sum, func(l LaneSample) bool { return l.Name == next.Name })
		if k < 0 {
			sum = append(sum, next)
			continue
		}
		next.Answered, next.Throttled = next.Answered+sum[k].Answered, next.Throttled+sum[k].Throttled
		sum[k] = next
	}
	return busiest(sum)
}

// busiest returns at most LanesInSample of the lanes, busiest first.
func busiest(lanes []LaneSample) []LaneSample {
	slices.SortFunc(lanes, func(a, b LaneSample) int {
		return cmp.Or(cmp.Compare(b.Answered+b.Throttled, a.Answered+a.Throttled), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(lanes[:min(len(lanes), LanesInSample)])
}

// gauges holds integrals over time, in seconds, of the values that a sample gives as means.
type gauges struct {
	span                               float64
	inFlight, waiting, parked, delayed float64
	most                               int // in flight
	allowed, allowedSpan               float64
}

// note adds a gap of time that ended with the given status.
func (g *gauges) note(s *batch.Status, allowing float64, gap time.Duration) {
	dt := gap.Seconds()
	g.span += dt
	g.inFlight += float64(s.Run.InFlight) * dt
	g.waiting += float64(s.Run.Held) * dt
	g.parked += float64(s.Run.Parked) * dt
	g.delayed += float64(s.Run.Delayed) * dt
	g.most = max(g.most, s.Run.InFlight)
	if allowing > 0 && !math.IsInf(allowing, 1) {
		g.allowed, g.allowedSpan = g.allowed+allowing*dt, g.allowedSpan+dt
	}
}

// ratio returns sum over span; 0 if span is 0.
func ratio(sum, span float64) float64 {
	if span == 0 {
		return 0
	}
	return sum / span
}

// sample returns the sample of what has happened since the latest one, and begins the next; nil:
// nothing happened.
func (r *Recorder) sample() *Sample {
	t, g, elapsed := &r.run.span, &r.gauges, r.elapsed()
	if elapsed == r.sampled && t.empty() {
		return nil
	}
	s := Sample{
		At: r.at, Elapsed: elapsed.Seconds(), Span: (elapsed - r.sampled).Seconds(),
		Answered: t.answered, Failed: t.failed, Calls: t.calls, Throttled: t.throttled, Broke: t.broke,
		InputTokens: t.used.InputTokens, OutputTokens: t.used.OutputTokens, CachedTokens: t.used.CachedTokens,
		USD: t.usd, Unpriced: t.unpriced,
		InFlight: ratio(g.inFlight, g.span), InFlightMost: g.most, Waiting: ratio(g.waiting, g.span),
		Parked: ratio(g.parked, g.span), Delayed: ratio(g.delayed, g.span),
		Allowed: ratio(g.allowed, g.allowedSpan), AllowedSpan: g.allowedSpan,
		Bounds: r.account.minus(&r.reported), Latency: t.answers.buckets(), Lanes: r.laneSamples(),
	}
	r.sampled, r.reported, r.gauges = elapsed, r.account, gauges{}
	for _, of := range append(r.lanes[:], r.run) {
		if of != nil {
			of.span = counts{}
		}
	}
	r.forecast.note(&s)
	return &s
}

var limitNames = [limiter.Dimensions]string{"requests", "tokens", "input_tokens", "output_tokens"}

// laneSamples returns the lanes that were busiest since the latest sample, with what is believed of
// their limits.
func (r *Recorder) laneSamples() []LaneSample {
	var lanes []LaneSample
	for _, of := range r.lanes[:noSlot] {
		if of != nil && !of.span.empty() {
			lanes = append(lanes, LaneSample{Name: of.name, Answered: of.span.answered, Throttled: of.span.throttled})
		}
	}
	lanes = busiest(lanes)
	for k := range lanes {
		l := &lanes[k]
		l.Limits = map[string]float64{}
		s := r.status(l.Name)
		if s == nil {
			continue
		}
		l.Phase = s.Phase.String()
		for d := range limiter.Dimensions {
			if limit := &s.View.Limits[d]; limit.Known() {
				l.Limits[limitNames[d]] = limit.Refill
			}
		}
	}
	return lanes
}

// Buckets is a histogram of latencies. It holds only the buckets that are not empty, in the
// order of their numbers. Bucket k holds latencies over growth^(k-1) ms and up to growth^k ms.
// Bucket 0 holds those of at most 1 ms. A quantile is therefore off by 5 % at most.
type Buckets []Bucket

// A Bucket is one of them.
type Bucket struct{ Number, Count int }

const (
	bucketGrowth = 1.1
	// lastBucket ends at 13 hours: longer than any call takes.
	lastBucket = 185
)

// bucketEnds holds the longest latency in each bucket.
var bucketEnds = func() (ends [lastBucket + 1]time.Duration) {
	for k := range ends {
		ends[k] = time.Duration(math.Pow(bucketGrowth, float64(k)) * float64(time.Millisecond))
	}
	return ends
}()

// bucketOf returns the number of a latency's bucket. A binary search takes half the time of a
// logarithm.
func bucketOf(d time.Duration) int {
	low, high := 0, lastBucket
	for low < high {
		if mid := (low + high) / 2; d <= bucketEnds[mid] {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// BucketOf returns the number of the bucket of a latency.
func BucketOf(d time.Duration) int { return bucketOf(d) }

// middleOf returns the latency that stands for a bucket: the geometric middle of its ends.
func middleOf(number int) time.Duration {
	return time.Duration(math.Pow(bucketGrowth, float64(number)-0.5) * float64(time.Millisecond))
}

// Count returns the number of latencies in all buckets.
func (b Buckets) Count() (n int) {
	for _, k := range b {
		n += k.Count
	}
	return n
}

// Quantile returns the latency under which the share q of them lies, q in 0..1; 0 if there
// are none.
func (b Buckets) Quantile(q float64) time.Duration {
	rank, seen := int(math.Ceil(q*float64(b.Count()))), 0
	for _, bucket := range b {
		if seen += bucket.Count; seen >= max(1, rank) {
			return middleOf(bucket.Number)
		}
	}
	return 0
}

// merge returns the sum of both histograms.
func (b Buckets) merge(c Buckets) Buckets {
	sum := make(Buckets, 0, len(b)+len(c))
	for len(b) > 0 || len(c) > 0 {
		switch {
		case len(c) == 0 || len(b) > 0 && b[0].Number < c[0].Number:
			sum, b = append(sum, b[0]), b[1:]
		case len(b) == 0 || c[0].Number < b[0].Number:
			sum, c = append(sum, c[0]), c[1:]
		default:
			sum = append(sum, Bucket{b[0].Number, b[0].Count + c[0].Count})
			b, c = b[1:], c[1:]
		}
	}
	return sum
}
