package gates

import "time"

// Numbers of the autoscaler.
const (
	scalerFirst  = 0.2 // of R, at the start
	scalerMost   = 5.0 // times R
	scalerEvery  = 20 * time.Second
	scalerDemand = 0.8 // the share of the rate that must be in demand for it to grow
)

// Scaler is a bucket of a second whose rate doubles while there is demand.
type Scaler struct {
	bucket *Bucket
	rate   float64
	most   float64
	asked  float64
	due    time.Duration
	oracle bool // a clairvoyant demands all there is
}

// NewScaler makes one about that rate.
func NewScaler(perSecond float64) *Scaler {
	s := &Scaler{rate: scalerFirst * perSecond, most: scalerMost * perSecond, due: scalerEvery}
	s.bucket = NewBucket(Steady(s.rate), time.Second)
	return s
}

func (s *Scaler) advance(at time.Duration) {
	for ; s.due <= at; s.due += scalerEvery {
		if s.oracle || s.asked > scalerDemand*s.rate*scalerEvery.Seconds() {
			s.bucket.advance(s.due)
			s.rate = min(2*s.rate, s.most)
			s.bucket.rate = Steady(s.rate)
		}
		s.asked = 0
	}
}

// Ask is part of [Gate].
func (s *Scaler) Ask(at time.Duration, tokens float64) (bool, time.Duration) {
	s.advance(at)
	s.asked++
	return s.bucket.Ask(at, tokens)
}

// Take is part of [Gate].
func (s *Scaler) Take(at time.Duration, tokens float64, until time.Duration) {
	s.advance(at)
	s.bucket.Take(at, tokens, until)
}

// Refused is part of [Gate].
func (s *Scaler) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (s *Scaler) Next(at time.Duration, tokens float64) time.Duration {
	s.oracle = true
	for {
		s.advance(at)
		next := s.bucket.Next(at, tokens)
		if next < s.due {
			return next
		}
		at = s.due
	}
}
