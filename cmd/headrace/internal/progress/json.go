package progress

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cmd/headrace/internal/printable"
	"github.com/headrace/headrace/coordinator/machine"
)

// jsonEvery is the period of progress events for programs.
const jsonEvery = time.Second

// JSON shows a run as JSON, one object a line.
func JSON(out io.Writer) Manner { return Manner{&events{out: out}, jsonEvery} }

// events shows a run as JSON, one object a line. Each has an "event" and the
// seconds since the start.
type events struct {
	out io.Writer
	meter
}

type noticeEvent struct {
	Event   string `json:"event"`
	Message string `json:"message"`
}

type progressEvent struct {
	Event     string  `json:"event"`
	ElapsedS  float64 `json:"elapsed_s"`
	Done      int     `json:"done"`
	Total     *int    `json:"total"` // null while a stream goes on
	Failed    int64   `json:"failed"`
	InFlight  int     `json:"in_flight"`
	Waiting   int     `json:"waiting"`
	PerSecond float64 `json:"per_second"`
	Open      int     `json:"breakers_open"`      // lanes whose server is taken to be down
	HalfOpen  int     `json:"breakers_half_open"` // lanes that let one call through, to see
	Lanes     []lane  `json:"lanes"`
}

// lane is the picture of one.
type lane struct {
	Name     string   `json:"name"`
	Phase    string   `json:"phase"`
	Speed    string   `json:"speed"`
	Why      string   `json:"why,omitempty"`
	WaitS    float64  `json:"wait_s,omitempty"`
	Epoch    uint64   `json:"epoch"`
	Rate     *float64 `json:"per_second"` // null: not limited
	InFlight int      `json:"in_flight"`
	Parked   int      `json:"parked"`
	Delayed  int      `json:"delayed"`
	MeanMS   int64    `json:"latency_ms"`
	P95MS    int64    `json:"p95_ms"`
	Errors   float64  `json:"error_rate"`
	Slowed   float64  `json:"slowed,omitempty"` // what is left of its pace because calls break
	Belief   string   `json:"belief,omitempty"` // what its limit is believed to be, in words
	Breaker  string   `json:"breaker"`          // closed, open or half-open
	Failures int      `json:"failures_in_row"`  // calls that broke since the latest success
	Cause    string   `json:"cause,omitempty"`  // why it has stopped, or what opened its breaker
	FirstS   *float64 `json:"first_due_s"`      // until the first delayed item may go again; null: there is none
	LastS    *float64 `json:"last_due_s"`       // and the last
	Level    levels   `json:"level"`
}

// levels are the units that each limit has left; negative is debt, null is not known.
type levels struct {
	Requests     *float64 `json:"requests"`
	Tokens       *float64 `json:"tokens"`
	InputTokens  *float64 `json:"input_tokens"`
	OutputTokens *float64 `json:"output_tokens"`
}

func levelsOf(l machine.Levels) levels {
	return levels{finite(l.Requests), finite(l.Tokens), finite(l.InputTokens), finite(l.OutputTokens)}
}

type transitionEvent struct {
	Event    string   `json:"event"`
	ElapsedS float64  `json:"elapsed_s"`
	Lane     string   `json:"lane"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Reason   string   `json:"reason,omitempty"`
	Epoch    uint64   `json:"epoch"`
	ForS     float64  `json:"for_s,omitempty"`
	Cause    string   `json:"cause,omitempty"` // why it has stopped, or what opened its breaker
	Met      int      `json:"met"`             // calls that met the latest wave of refusals
	Rate     *float64 `json:"per_second"`
	Belief   string   `json:"belief,omitempty"`
	Slowed   float64  `json:"slowed,omitempty"`     // what is left of the pace because calls break
	Errors   *float64 `json:"error_rate,omitempty"` // where that changes: the share that broke
}

func (e *events) print(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		line, _ = json.Marshal(noticeEvent{"notice", err.Error()})
	}
	_, _ = e.out.Write(append(printable.JSON(line), '\n')) // a progress that cannot be shown is lost
}

func (e *events) scale(s Scale)      { e.Scale = s }
func (e *events) notice(text string) { e.print(noticeEvent{"notice", text}) }
func (e *events) log(line []byte)    { _, _ = e.out.Write(printable.JSON(line)) } // likewise

func (e *events) transition(t batch.Transition) {
	out := transitionEvent{
		Event: "transition", ElapsedS: seconds(t.At.Sub(e.Began)), Lane: t.Lane,
		From: t.From.String(), To: t.To.String(), Reason: t.Reason.String(),
		Epoch: t.Epoch, Met: t.Wave, Rate: finite(t.Rate), Belief: t.Belief, Cause: textOf(t.Cause),
	}
	if t.Span > 0 {
		out.Slowed, out.Errors = round(t.Slowed), finite(t.Errors)
	}
	if !t.Until.IsZero() {
		out.ForS = seconds(t.Until.Sub(t.At))
	}
	e.print(out)
}

func (e *events) status(s batch.Status) {
	p := e.read(s)
	out := progressEvent{
		Event: "progress", ElapsedS: seconds(p.elapsed), Done: p.done, Failed: p.failed,
		InFlight: p.inFlight, Waiting: p.waiting, PerSecond: round(p.perSecond),
		Open: s.Open, HalfOpen: s.HalfOpen, Lanes: []lane{},
	}
	if p.total >= 0 {
		out.Total = &p.total
	}
	for _, l := range s.Lanes {
		out.Lanes = append(out.Lanes, lane{
			Name: l.Name, Phase: l.Phase.String(), Speed: l.Speed.String(), Why: l.Why, WaitS: seconds(l.Wait),
			Epoch: l.Epoch, Rate: finite(l.Rate), InFlight: l.InFlight, Parked: l.Parked, Delayed: l.Delayed,
			MeanMS: l.Latency.Milliseconds(), P95MS: l.P95.Milliseconds(), Errors: round(l.Errors), Slowed: round(l.Slowed),
			Belief: l.View.String(), Breaker: l.Breaker.String(), Failures: l.Failures, Cause: textOf(l.Cause),
			FirstS: until(s.At, l.FirstDue), LastS: until(s.At, l.LastDue), Level: levelsOf(l.Level),
		})
	}
	e.print(out)
}

func (e *events) summary(s *Report) {
	if s != nil {
		e.print(s.event())
	}
}

// until is how many seconds there are from now until then; null: there is no such moment.
func until(now, then time.Time) *float64 {
	if then.IsZero() {
		return nil
	}
	return finite(max(0, then.Sub(now)).Seconds())
}

// seconds are rounded to milliseconds: what is behind them is noise.
func seconds(d time.Duration) float64 { return round(d.Seconds()) }

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// finite is a number for JSON, which has no infinity: null then.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	x = round(x)
	return &x
}
