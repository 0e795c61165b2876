package observe

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A packer writes samples in few bytes: a few hundred each, a tenth of what they take with
// their maps and slices. Only the packer itself can read them.
type packer struct {
	words []string // names of lanes and phases: as many as there are
	place map[string]uint64
}

var limitNames = [limiter.Dimensions]string{"requests", "tokens", "input_tokens", "output_tokens"}

func (p *packer) word(w string) uint64 {
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

// pack packs a sample of the recorder's own, whose bounds and limits have names that are known
// here.
func (p *packer) pack(s *Sample) []byte {
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
		b = p.packLane(b, &s.Lanes[k])
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (p *packer) packLane(b []byte, l *LaneSample) []byte {
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

// unpack returns the sample that was packed.
func (p *packer) unpack(packed []byte) (s Sample) {
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
		s.Lanes = append(s.Lanes, p.unpackLane(&r))
	}
	return s
}

func (p *packer) unpackLane(r *reader) LaneSample {
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
