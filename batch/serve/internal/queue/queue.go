package queue

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/serve/internal/line"
)

// Errors of requests that do not wait any longer.
var (
	ErrFull    = line.ErrFull
	ErrDrained = errors.New("queue: drained")
	ErrClosed  = errors.New("queue: closed")
)

// LateError says that a request would leave too late, or that its time is up.
type LateError struct{ Forecast Forecast }

func (e *LateError) Error() string {
	return fmt.Sprintf("queue: too late: %v", e.Forecast)
}

// A Forecast says how long a request is going to wait if nobody comes.
type Forecast struct {
	Before int           // requests that go before it
	Wait   time.Duration // about; negative: it is not known
}

func (f Forecast) String() string {
	if f.Wait < 0 {
		return fmt.Sprintf("%d before you", f.Before)
	}
	return fmt.Sprintf("%d before you, about %v", f.Before, f.Wait.Round(time.Second))
}

// Pace says how fast calls of a pool may leave.
type Pace struct {
	Rate     float64   // calls per second; 0: not known; +Inf: nothing limits them
	From     time.Time // nothing leaves before; zero: something may
	ByTokens bool      // tokens limit them, and not their number
	Searched bool      // the limit is being searched: Rate is only the pace of the search
	Stopped  error     // nothing will leave any more; nil: something may
}

// Config says how a queue works.
type Config struct {
	Clock clockwork.Clock        // nil: the real one
	Bound line.Config            // how many may wait
	Pace  func(pool string) Pace // asked once a second at most for each pool with waiting requests; nil: nothing is known
	// Ahead is the time whose calls ask the coordinator together, where leave comes from afar; 0: one at a time asks.
	Ahead time.Duration
}

const (
	// renewEvery is the time between two forecasts of a request.
	renewEvery = time.Second
	// lateMargin is by how much a renewed forecast must miss a request's patience for a refusal: the pace is an estimate.
	lateMargin = 1.25
	// minMeasured is the time, and the number of calls, from which on the measured pace counts.
	minMeasured = 5
	// searchingShare is the part of a search's pace below which something else holds calls back.
	searchingShare = 0.75
	// maxMeasured is the time after which older calls count half.
	maxMeasured = time.Minute
	// headsUnknownPace is the number of requests that ask together where the pace is not known: a second's calls of a
	// small account.
	headsUnknownPace = 32
	// maxHeadsAhead bounds it, however fast calls leave.
	maxHeadsAhead = 256
)

// A Queue lets requests wait. Make one with [New].
type Queue struct {
	cfg    Config
	calls  chan func()
	close  chan struct{} // has room for one
	closed chan struct{}

	// The rest belongs to the owner.
	line    *line.Line
	pools   map[string]*pool
	renewAt time.Time // when the forecasts are renewed; zero: nobody waits
	drained bool
}

// pool holds the facts that the owner has of a pool.
type pool struct {
	heads        []*Ticket // have their turn, and have not left
	pace         Pace
	askedAt      time.Time // for the pace
	meanCost     float64   // cost of a request; 0: none has come
	leftCost     float64   // cost of the calls that have left since
	waitingSince time.Time // when something began to wait; zero: nothing does
}

// New starts a queue. Its owner runs until Close.
func New(cfg Config) *Queue {
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	if cfg.Pace == nil {
		cfg.Pace = func(string) Pace { return Pace{} }
	}
	q := &Queue{
		cfg: cfg, calls: make(chan func()), close: make(chan struct{}, 1), closed: make(chan struct{}),
		line: line.New(cfg.Bound), pools: map[string]*pool{},
	}
	go q.run()
	return q
}

// Close refuses what waits, and ends the owner. It may be called more than once.
func (q *Queue) Close() {
	q.Drain()
	select {
	case q.close <- struct{}{}:
	default:
	}
	<-q.closed
}

// run is the owner's loop: it runs what others ask for, and renews forecasts while requests wait.
func (q *Queue) run() {
	defer close(q.closed)
	timer := q.cfg.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		var tick <-chan time.Time
		if q.line.Waiting() == 0 {
			q.renewAt = time.Time{}
		} else {
			timer.Reset(q.untilNextTask())
			tick = timer.Chan()
		}
		select {
		case f := <-q.calls:
			f()
		case <-tick:
			q.renew()
		case <-q.close:
			return
		}
	}
}

// untilNextTask returns the time until a forecast is renewed, or a request has waited for too long.
func (q *Queue) untilNextTask() time.Duration {
	now := q.cfg.Clock.Now()
	if q.renewAt.IsZero() {
		q.renewAt = now.Add(renewEvery)
	}
	at := q.renewAt
	if due := q.line.Due(); !due.IsZero() && due.Before(at) {
		at = due
	}
	return max(0, at.Sub(now))
}

// onOwner runs f in the owner's goroutine, and waits for it. It returns false if the owner has ended.
func (q *Queue) onOwner(f func()) bool {
	done := make(chan struct{})
	select {
	case q.calls <- func() { f(); close(done) }:
		<-done
		return true
	case <-q.closed:
		return false
	}
}

// Ticket is a request in the queue. Its owner must call [Ticket.Done].
type Ticket struct {
	q       *Queue
	pool    string
	request *line.Request
	turn    chan struct{}
	refused chan error    // has room for one
	news    chan Forecast // likewise
}

// Turn is closed when the request may ask the coordinator.
func (t *Ticket) Turn() <-chan struct{} { return t.turn }

// Refused yields the error of a request that waits no longer.
func (t *Ticket) Refused() <-chan error { return t.refused }

// News yields the latest forecast, about once a second.
func (t *Ticket) News() <-chan Forecast { return t.news }

// Enter puts a request into the queue of a pool. The cost of the place is its tokens; 0 if they are not
// known. The error is ErrFull, ErrDrained, ErrClosed, a *LateError, or the one that stopped the pool.
func (q *Queue) Enter(name string, at line.Place) (t *Ticket, err error) {
	if !q.onOwner(func() { t, err = q.enter(name, at) }) {
		err = ErrClosed
	}
	return t, err
}

// enter is Enter in the owner's goroutine.
func (q *Queue) enter(name string, at line.Place) (*Ticket, error) {
	if q.drained {
		return nil, ErrDrained
	}
	now := q.cfg.Clock.Now()
	p := q.pools[name]
	if p == nil {
		q.sweep()
		p = &pool{}
		q.pools[name] = p
	}
	p.renewPace(q, name, now)
	if p.pace.Stopped != nil {
		return nil, p.pace.Stopped
	}
	t := &Ticket{q: q, pool: name, turn: make(chan struct{}), refused: make(chan error, 1), news: make(chan Forecast, 1)}
	at.Cost, at.Payload = p.cost(at.Cost), t
	request, err := q.line.Enter(name, at)
	if err != nil {
		return nil, err
	}
	t.request = request
	if p.waitingSince.IsZero() {
		p.waitingSince, p.leftCost = now, 0
	}
	if f := p.forecast(now, request, q.line); f.isLate(now, at.Latest, 1) {
		q.line.Leave(request)
		return nil, &LateError{Forecast: f}
	}
	q.giveTurns(name, p)
	return t, nil
}

// Left says that the request's call has left: the next one has its turn. Saying it twice is saying it once.
func (t *Ticket) Left() { t.q.onOwner(t.markLeft) }

// markLeft is Left in the owner's goroutine.
func (t *Ticket) markLeft() {
	p := t.q.pools[t.pool]
	if p == nil || !p.removeHead(t) {
		return
	}
	p.leftCost += t.request.Cost
	t.q.giveTurns(t.pool, p)
}

// Done says that the request is over, wherever it was. Saying it twice is saying it once.
func (t *Ticket) Done() {
	t.q.onOwner(func() {
		frees := t.q.line.Leave(t.request)
		if p := t.q.pools[t.pool]; p != nil && p.removeHead(t) {
			t.q.giveTurns(t.pool, p)
		}
		if frees {
			for name, p := range t.q.pools {
				t.q.giveTurns(name, p)
			}
		}
	})
}

// removeHead removes a request from those that have their turn, and reports whether it was one.
func (p *pool) removeHead(t *Ticket) bool {
	i := slices.Index(p.heads, t)
	if i >= 0 {
		p.heads = slices.Delete(p.heads, i, i+1)
	}
	return i >= 0
}

// maxHeads returns how many requests of a pool may have their turn at once.
func (q *Queue) maxHeads(p *pool) int {
	switch rate := p.pace.Rate; {
	case q.cfg.Ahead == 0:
		return 1
	case rate <= 0 || math.IsInf(rate, 1) || p.pace.Searched:
		return headsUnknownPace
	default:
		return min(maxHeadsAhead, 1+int(math.Ceil(min(maxHeadsAhead, rate*q.cfg.Ahead.Seconds()))))
	}
}

// giveTurns gives the next requests their turn, as long as fewer have it than may.
func (q *Queue) giveTurns(name string, p *pool) {
	for most := q.maxHeads(p); len(p.heads) < most; {
		r := q.line.Next(name)
		if r == nil {
			break
		}
		t := r.Payload.(*Ticket)
		p.heads = append(p.heads, t)
		close(t.turn)
	}
	if q.line.WaitingIn(name) == 0 {
		p.waitingSince = time.Time{}
	}
}

// maxIdlePools bounds the pools that are kept while nobody waits in them. A pool may be a model that a client has made up.
const maxIdlePools = 256

// sweep drops the pools in which nobody waits, once there are many.
func (q *Queue) sweep() {
	if len(q.pools) < maxIdlePools {
		return
	}
	for name, p := range q.pools {
		if len(p.heads) == 0 && q.line.WaitingIn(name) == 0 {
			delete(q.pools, name)
		}
	}
}

// renew refuses requests that have waited for too long. About once a second it also sends the others a new
// forecast.
func (q *Queue) renew() {
	now := q.cfg.Clock.Now()
	for _, r := range q.line.Expire(now) {
		r.Payload.(*Ticket).refuse(&LateError{Forecast: Forecast{Wait: -1}})
	}
	if now.Before(q.renewAt) {
		return
	}
	q.renewAt = now.Add(renewEvery)
	for name, p := range q.pools {
		if q.line.WaitingIn(name) == 0 {
			continue
		}
		if p.renewPace(q, name, now); p.pace.Stopped != nil {
			q.clear(name, p.pace.Stopped)
			continue
		}
		var late []*line.Request
		q.line.Each(name, func(r *line.Request, n int, cost float64) {
			t, f := r.Payload.(*Ticket), p.forecastAfter(now, n, cost)
			if f.isLate(now, r.Latest, lateMargin) {
				late = append(late, r)
				t.refuse(&LateError{Forecast: f})
				return
			}
			t.setForecast(f)
		})
		for _, r := range late {
			q.line.Leave(r)
		}
	}
}

func (t *Ticket) refuse(err error) { t.refused <- err } // has room: it is refused once

// setForecast replaces the forecast that nobody has read yet.
func (t *Ticket) setForecast(f Forecast) {
	select {
	case <-t.news:
	default:
	}
	t.news <- f // has room: only the owner writes here
}

// Drain refuses all that wait and all that come. Requests that have had their turn go on.
func (q *Queue) Drain() {
	q.onOwner(func() {
		q.drained = true
		for name := range q.pools {
			q.clear(name, ErrDrained)
		}
	})
}

// clear refuses all that wait in a pool.
func (q *Queue) clear(name string, why error) {
	for _, r := range q.line.Clear(name) {
		r.Payload.(*Ticket).refuse(why)
	}
}

// renewPace asks for the pace, unless that was done within the last second.
func (p *pool) renewPace(q *Queue, name string, now time.Time) {
	if !p.askedAt.IsZero() && now.Sub(p.askedAt) < renewEvery {
		return
	}
	if passed := now.Sub(p.askedAt); p.pace.From.After(p.askedAt) && !p.waitingSince.IsZero() {
		p.waitingSince = p.waitingSince.Add(min(passed, p.pace.From.Sub(p.askedAt))) // nothing could leave then
	}
	p.askedAt, p.pace = now, q.cfg.Pace(name)
	if passed := now.Sub(p.waitingSince); !p.waitingSince.IsZero() && passed > maxMeasured {
		p.waitingSince, p.leftCost = now.Add(-passed/2), p.leftCost/2
	}
}

// tokensPerUnit is the draw of a request of average size where nothing is known of others: 1000 tokens.
const tokensPerUnit = 1000

// cost returns what a request draws: 1 where the number of calls is limited.
func (p *pool) cost(tokens float64) float64 {
	cost := 1.0
	if p.pace.ByTokens && tokens > 0 {
		cost = tokens / tokensPerUnit
	}
	if p.meanCost == 0 {
		p.meanCost = cost
	}
	p.meanCost += (cost - p.meanCost) / 32 // the mean of some dozen requests
	return cost
}

// rate returns the cost that will leave in a second; 0: it is not known. What has left says nothing of a limit that
// is being searched, unless that is not what holds calls back.
func (p *pool) rate(now time.Time) float64 {
	rate, measured := p.pace.Rate*p.meanCost, p.measured(now)
	switch {
	case p.pace.Searched && measured > searchingShare*rate:
		return 0
	case p.pace.Searched, measured > 0 && (measured < rate || rate == 0):
		return measured
	}
	return rate
}

// measured returns the cost that has left in a second while something waited; 0: it is not known yet.
func (p *pool) measured(now time.Time) float64 {
	passed := now.Sub(p.waitingSince).Seconds()
	if p.waitingSince.IsZero() || passed < minMeasured || p.leftCost < minMeasured {
		return 0
	}
	return p.leftCost / passed
}

// forecast returns the forecast of one request.
func (p *pool) forecast(now time.Time, r *line.Request, l *line.Line) Forecast {
	n, cost := l.Ahead(r)
	return p.forecastAfter(now, n, cost)
}

// forecastAfter returns the forecast of a request behind n others of the given cost, and behind those that have
// their turn.
func (p *pool) forecastAfter(now time.Time, n int, cost float64) Forecast {
	for _, t := range p.heads {
		n, cost = n+1, cost+t.request.Cost
	}
	f := Forecast{Before: n, Wait: -1}
	held := max(0, p.pace.From.Sub(now))
	switch rate := p.rate(now); {
	case rate > 0:
		if f.Wait = math.MaxInt64; cost/rate < (math.MaxInt64/2 - held).Seconds() {
			f.Wait = held + time.Duration(cost/rate*float64(time.Second))
		}
	case held > 0:
		f.Wait = held
	}
	return f
}

// isLate reports whether a request would leave too late. margin multiplies the time that it may wait.
func (f Forecast) isLate(now, latest time.Time, margin float64) bool {
	return !latest.IsZero() && f.Wait >= 0 && float64(f.Wait) > margin*float64(latest.Sub(now))
}
