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

// A codec writes samples in few bytes: a few hundred each, a tenth of what they take with
// their maps and slices. Only the codec itself can read them.
type codec struct {
	words []string // names of lanes and phases: as many as there are
	place map[string]uint64
}

var limitNames = [limiter.Dimensions]string{"requests", "tokens", "input_tokens", "output_tokens"}

func (p *codec) word(w string) uint64 {
	if k, ok := p.place[w]; ok {
		return k
	}
	if p.place == nil {
		p.place = map[string]uint64{}
	}
	k := uint64(len(p.words))
	p.words, p.place[w] = append(p.words, w), k
	return k
}

// encode packs a sample of the recorder's own, whose bounds and limits have names that are known
// here.
func (p *codec) encode(s *Sample) []byte {
	b := make([]byte, 0, 512)
	b = binary.AppendVarint(b, s.At.UnixNano())
	for _, f := range s.floats() {
		b = appendFloat(b, *f)
	}
	for _, n := range s.ints() {
		b = binary.AppendVarint(b, int64(*n))
	}
	for _, n := range s.tokens() {
		b = binary.AppendVarint(b, *n)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Bounds)))
	for bound, d := range s.Bounds {
		b = binary.AppendUvarint(b, uint64(placeOf[bound]))
		b = binary.AppendVarint(b, int64(d))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Latency)))
	for _, k := range s.Latency {
		b = binary.AppendUvarint(b, uint64(k.Number))
		b = binary.AppendVarint(b, int64(k.Count))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Lanes)))
	for k := range s.Lanes {
		b = p.encodeLane(b, &s.Lanes[k])
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (p *codec) encodeLane(b []byte, l *LaneSample) []byte {
	b = binary.AppendUvarint(b, p.word(l.Name))
	b = binary.AppendUvarint(b, p.word(l.Phase))
	b = binary.AppendVarint(b, int64(l.Answered))
	b = binary.AppendVarint(b, int64(l.Throttled))
	for _, name := range limitNames {
		b = appendFloat(b, l.Limits[name])
	}
	return b
}

// The numbers of a sample that are packed alike, in the order in which they are.
func (s *Sample) floats() [9]*float64 {
	return [...]*float64{&s.Elapsed, &s.Span, &s.USD, &s.InFlight, &s.Waiting, &s.Parked, &s.Delayed, &s.Allowed, &s.AllowedSpan}
}

func (s *Sample) ints() [7]*int {
	return [...]*int{&s.Answered, &s.Failed, &s.Calls, &s.Throttled, &s.Broke, &s.Unpriced, &s.InFlightMost}
}

func (s *Sample) tokens() [3]*int64 {
	return [...]*int64{&s.InputTokens, &s.OutputTokens, &s.CachedTokens}
}

// appendFloat takes one byte for 0, and few for round numbers, whose last bits are 0.
func appendFloat(b []byte, f float64) []byte {
	return binary.AppendUvarint(b, bits.Reverse64(math.Float64bits(f)))
}

// decode returns the sample that was packed.
func (p *codec) decode(packed []byte) (s Sample) {
	r := reader(packed)
	s.At = time.Unix(0, r.varint())
	for _, f := range s.floats() {
		*f = r.float()
	}
	for _, n := range s.ints() {
		*n = int(r.varint())
	}
	for _, n := range s.tokens() {
		*n = r.varint()
	}
	s.Bounds = Ledger{}
	for range r.uvarint() {
		bound := boundAt(int(r.uvarint()))
		s.Bounds[bound] = time.Duration(r.varint())
	}
	for range r.uvarint() {
		number := int(r.uvarint())
		s.Latency = append(s.Latency, Bucket{number, int(r.varint())})
	}
	for range r.uvarint() {
		s.Lanes = append(s.Lanes, p.decodeLane(&r))
	}
	return s
}

func (p *codec) decodeLane(r *reader) LaneSample {
	l := LaneSample{Name: p.words[r.uvarint()], Phase: p.words[r.uvarint()]}
	l.Answered, l.Throttled = int(r.varint()), int(r.varint())
	l.Limits = map[string]float64{}
	for _, name := range limitNames {
		if rate := r.float(); rate != 0 {
			l.Limits[name] = rate
		}
	}
	return l
}

// A reader takes values off the front of a packed sample.
type reader []byte

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(*r)
	*r = (*r)[size:]
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(*r)
	*r = (*r)[size:]
	return n
}

func (r *reader) float() float64 { return math.Float64frombits(bits.Reverse64(r.uvarint())) }

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
