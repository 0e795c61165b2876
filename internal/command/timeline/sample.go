package timeline

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/observe"
)

// timeLayout reads what [event.Stamp] has written.
const timeLayout = time.RFC3339Nano

// sampleLine is a sample as the file has it. A number that is not known is null, or absent
// if it is money.
type sampleLine struct {
	Event        string             `json:"event"`
	At           string             `json:"at"` // its end
	ElapsedS     float64            `json:"elapsed_s"`
	SpanS        float64            `json:"span_s"`
	Answered     int                `json:"answered"`
	Failed       int                `json:"failed"`
	Calls        int                `json:"calls"`
	Throttled    int                `json:"throttled"`
	Broke        int                `json:"broke"`
	InputTokens  int64              `json:"input_tokens"`
	OutputTokens int64              `json:"output_tokens"`
	CachedTokens int64              `json:"cached_tokens"`
	CostUSD      *float64           `json:"cost_usd,omitempty"` // absent: nothing has a price
	Unpriced     int                `json:"unpriced,omitempty"` // items without a price
	InFlight     float64            `json:"in_flight"`
	InFlightMost int                `json:"in_flight_max"`
	Waiting      float64            `json:"waiting"`
	Parked       float64            `json:"parked"`
	Delayed      float64            `json:"delayed"`
	Allowed      *float64           `json:"allowed_per_second"`
	AllowedS     float64            `json:"allowed_s,omitempty"` // seconds for which that is known; absent: the whole span
	BoundS       map[string]float64 `json:"bound_s"`
	Latency      [][2]int           `json:"latency"` // index of a bucket, and its count
	Lanes        []laneLine         `json:"lanes"`
}

type laneLine struct {
	Name      string             `json:"name"`
	Phase     string             `json:"phase"`
	Answered  int                `json:"answered"`
	Throttled int                `json:"throttled"`
	Limits    map[string]float64 `json:"limits"`
}

// maxName bounds the name of a lane, in runes: it comes from a model's name.
const maxName = 100

// encodeSample returns the line of a sample, with its line feed.
func encodeSample(s *observe.Sample) []byte {
	l := sampleLine{
		Event: "sample", At: event.Stamp(s.At), ElapsedS: round(s.Elapsed, 1e3), SpanS: round(s.Span, 1e6),
		Answered: s.Answered, Failed: s.Failed, Calls: s.Calls, Throttled: s.Throttled, Broke: s.Broke,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens, Unpriced: s.Unpriced,
		InFlight: round(s.InFlight, 1e3), InFlightMost: s.InFlightMost, Waiting: round(s.Waiting, 1e3),
		Parked: round(s.Parked, 1e3), Delayed: round(s.Delayed, 1e3),
		BoundS: make(map[string]float64, len(s.Bounds)), Latency: make([][2]int, 0, len(s.Latency)), Lanes: []laneLine{},
	}
	if s.USD > 0 || s.Unpriced == 0 {
		usd := round(s.USD, 1e9)
		l.CostUSD = &usd
	}
	if s.Allowed > 0 && !math.IsInf(s.Allowed, 0) {
		allowed := round(s.Allowed, 1e3)
		l.Allowed = &allowed
		if s.AllowedSpan < s.Span {
			l.AllowedS = round(s.AllowedSpan, 1e6)
		}
	}
	for b, d := range s.Bounds {
		if seconds := round(d.Seconds(), 1e6); seconds > 0 {
			l.BoundS[string(b)] = seconds
		}
	}
	for _, b := range s.Latency {
		l.Latency = append(l.Latency, [2]int{b.Number, b.Count})
	}
	for _, lane := range s.Lanes[:min(len(s.Lanes), observe.LanesInSample)] {
		l.Lanes = append(l.Lanes, encodeLane(&lane))
	}
	text, _ := json.Marshal(l) // all rounded numbers are finite
	return append(printable.JSON(text), '\n')
}

func encodeLane(s *observe.LaneSample) laneLine {
	l := laneLine{clip(s.Name, maxName), s.Phase, s.Answered, s.Throttled, make(map[string]float64, len(s.Limits))}
	for limit, perSecond := range s.Limits {
		if !math.IsInf(perSecond, 0) {
			l.Limits[limit] = round(perSecond, 1e3)
		}
	}
	return l
}

// decodeSample reads what encodeSample has written.
func decodeSample(line []byte) (*observe.Sample, error) {
	var l sampleLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	at, err := time.Parse(timeLayout, l.At)
	if err != nil {
		return nil, err
	}
	s := &observe.Sample{
		At: at, Elapsed: l.ElapsedS, Span: l.SpanS,
		Answered: l.Answered, Failed: l.Failed, Calls: l.Calls, Throttled: l.Throttled, Broke: l.Broke,
		InputTokens: l.InputTokens, OutputTokens: l.OutputTokens, CachedTokens: l.CachedTokens, Unpriced: l.Unpriced,
		InFlight: l.InFlight, InFlightMost: l.InFlightMost, Waiting: l.Waiting, Parked: l.Parked, Delayed: l.Delayed,
	}
	if l.CostUSD != nil {
		s.USD = *l.CostUSD
	}
	if l.Allowed != nil {
		s.Allowed, s.AllowedSpan = *l.Allowed, l.AllowedS
		if l.AllowedS == 0 {
			s.AllowedSpan = l.SpanS
		}
	}
	if err := l.bounds(s); err != nil {
		return nil, err
	}
	for _, b := range l.Latency {
		s.Latency = append(s.Latency, observe.Bucket{Number: b[0], Count: b[1]})
	}
	for _, lane := range l.Lanes {
		s.Lanes = append(s.Lanes, observe.LaneSample(lane))
	}
	return s, nil
}

var errNoSample = errors.New("it is not a sample of a run")

// bounds checks the other fields of a sample, and reads what held the run back.
func (l *sampleLine) bounds(s *observe.Sample) error {
	if l.SpanS < 0 || l.SpanS > maxSpan || l.Answered < 0 || l.Failed < 0 || len(l.Lanes) > observe.LanesInSample {
		return errNoSample
	}
	s.Bounds = make(observe.Ledger, len(l.BoundS))
	for b, seconds := range l.BoundS {
		if seconds < 0 || seconds > maxSpan {
			return errNoSample
		}
		s.Bounds[observe.Bound(b)] = time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return nil
}

// round rounds to a fraction of one; a value that is no number becomes 0.
func round(x, parts float64) float64 {
	if r := math.Round(x*parts) / parts; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return 0
}

// clip returns a text of at most n runes.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
