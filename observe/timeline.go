package observe

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// MaxSamples is the largest number of samples in a timeline: at a second each an hour, and a
// week at four minutes each.
const MaxSamples = 3600

// A timeline holds a run's samples. When it is full, neighbours merge, and from then on twice as
// many samples as before make one.
type timeline struct {
	codec
	whole [][]byte // packed
	each  int      // samples in each of these
	last  Sample   // the latest one
	in    int      // samples in that; at most each
}

// add appends a sample.
func (t *timeline) add(s Sample) {
	switch {
	case t.in == 0:
		t.each, t.last, t.in = 1, s, 1
		return
	case t.in < t.each:
		t.last, t.in = t.last.Merge(s), t.in+1
		return
	}
	t.whole = append(t.whole, t.encode(&t.last))
	t.last, t.in = s, 1
	if len(t.whole) < MaxSamples {
		return
	}
	half := make([][]byte, 0, MaxSamples)
	for k := 0; k+1 < MaxSamples; k += 2 { // it is even, so none is left over
		merged := t.decode(t.whole[k]).Merge(t.decode(t.whole[k+1]))
		half = append(half, t.encode(&merged))
	}
	t.whole, t.each = half, 2*t.each
}

// list returns a copy.
func (t *timeline) list() []Sample {
	if t.in == 0 {
		return nil
	}
	list := make([]Sample, 0, len(t.whole)+1)
	for _, packed := range t.whole {
		list = append(list, t.decode(packed))
	}
	return append(list, t.copy(&t.last))
}

// copy returns a copy that shares no memory with the sample.
func (t *timeline) copy(s *Sample) Sample { return t.decode(t.encode(s)) }

// Timeline returns a copy of the run's samples so far, oldest first: at most MaxSamples.
func (r *Recorder) Timeline() []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline.list()
}

// A codec writes samples in few bytes: a few hundred each, a tenth of what they take with their
// maps and slices. Only the codec itself can read them.
type codec struct {
	words []string // names of lanes and phases: as many as there are
	place map[string]uint64
}

var limitNames = [limiter.Dimensions]string{"requests", "tokens", "input_tokens", "output_tokens"}

// encode packs a sample.
func (c *codec) encode(s *Sample) []byte {
	p := packed{codec: c, bytes: make([]byte, 0, 512), writes: true}
	p.sample(*s)
	return slices.Clone(p.bytes)
}

// decode returns the sample that was packed.
func (c *codec) decode(bytes []byte) Sample {
	p := packed{codec: c, bytes: bytes}
	return p.sample(Sample{})
}

// packed is a sample that is being written or read: its methods append their argument, or return
// what they take off the front in its place. So one function says how both are done.
type packed struct {
	*codec
	bytes  []byte
	writes bool
}

// sample writes or reads a sample. The order of these lines is the form in which samples are kept.
func (p *packed) sample(s Sample) Sample {
	s.At = time.Unix(0, int64(p.number(uint64(s.At.UnixNano()))))
	for _, f := range []*float64{&s.Elapsed, &s.Span, &s.USD, &s.InFlight, &s.Waiting, &s.Parked, &s.Delayed, &s.Allowed, &s.AllowedSpan} {
		*f = p.float(*f)
	}
	for _, n := range []*int{&s.Answered, &s.Failed, &s.Calls, &s.Throttled, &s.Broke, &s.Unpriced, &s.InFlightMost} {
		*n = p.int(*n)
	}
	for _, n := range []*int64{&s.InputTokens, &s.OutputTokens, &s.CachedTokens} {
		*n = int64(p.number(uint64(*n)))
	}
	for k, d := range s.Bounds {
		s.Bounds[k] = time.Duration(p.number(uint64(d)))
	}
	s.Latency = list(p, s.Latency, func(b Bucket) Bucket { return Bucket{p.int(b.Number), p.int(b.Count)} })
	s.Lanes = list(p, s.Lanes, p.lane)
	return s
}

func (p *packed) lane(l LaneSample) LaneSample {
	own := LaneSample{Name: p.word(l.Name), Phase: p.word(l.Phase), Answered: p.int(l.Answered), Throttled: p.int(l.Throttled), Limits: map[string]float64{}}
	for _, name := range limitNames {
		if rate := p.float(l.Limits[name]); rate != 0 {
			own.Limits[name] = rate
		}
	}
	return own
}

func list[T any](p *packed, from []T, one func(T) T) (to []T) {
	n := p.int(len(from))
	from = append(from, make([]T, n-len(from))...)
	for _, x := range from {
		to = append(to, one(x))
	}
	return to
}

func (p *packed) word(w string) string {
	k, ok := p.place[w]
	if p.writes && !ok {
		if p.place == nil {
			p.place = map[string]uint64{}
		}
		k = uint64(len(p.words))
		p.words, p.place[w] = append(p.words, w), k
	}
	return p.words[p.number(k)]
}

func (p *packed) int(n int) int { return int(p.number(uint64(n))) }

// float takes one byte for 0, and few for round numbers, whose last bits are 0.
func (p *packed) float(f float64) float64 {
	return math.Float64frombits(bits.Reverse64(p.number(bits.Reverse64(math.Float64bits(f)))))
}

// number takes few bytes for small numbers; no negative one is small.
func (p *packed) number(n uint64) uint64 {
	if p.writes {
		p.bytes = binary.AppendUvarint(p.bytes, n)
		return n
	}
	n, size := binary.Uvarint(p.bytes)
	p.bytes = p.bytes[size:]
	return n
}

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
