package observe

import (
	"math"
	"testing"
	"time"
)

// Ended items are spread over the time in which they ended: a stretch in which nothing ran is a
// gap, older samples are left out, and the sum is kept.
func TestSpeedsOf(t *testing.T) {
	if got, span := SpeedsOf(nil, 10); got != nil || span != 0 {
		t.Errorf("%v, %v", got, span)
	}
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var all []Sample
	for n := 4; n <= 100; n += 4 {
		if n > 40 && n <= 60 {
			continue
		}
		all = append(all, Sample{At: began.Add(time.Duration(n) * time.Second), Elapsed: float64(n), Span: 4, Answered: 9, Failed: 3})
	}
	got, span := SpeedsOf(all, 10)
	if span != 100*time.Second || len(got) != 10 || math.Abs(got[0]-3) > 1e-9 || got[4] != 0 || got[5] != 0 || math.Abs(got[9]-3) > 1e-9 {
		t.Errorf("%v over %v", got, span)
	}
	if got, span := SpeedsOf(all[:1], 60); span != 4*time.Second || len(got) != 4 || got[3] != 3 {
		t.Errorf("%v over %v", got, span)
	}
	if got, _ := SpeedsOf([]Sample{{At: began, Elapsed: 0.5, Span: 0.5, Answered: 1}}, 60); got != nil {
		t.Errorf("%v", got)
	}
	late := append(all[:len(all):len(all)], Sample{At: began.Add(2 * time.Hour), Elapsed: 7200, Span: 1, Answered: 5})
	if got, span := SpeedsOf(late, 40); span != 10*time.Minute || got[0] != 0 || math.Abs(got[39]-5.0/15) > 1e-9 {
		t.Errorf("%v over %v", got, span)
	}
}
