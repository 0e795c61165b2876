package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
)

// A Request is one with which headrace serve is done.
type Request struct {
	Client, Class, Lane string
	Result              Result
	Code                string // of a refusal
	Waited, First       time.Duration
	USD                 float64
	Priced              bool
	Called              bool // a call was made for it
}

// A Result is what became of a request.
type Result int

// The results.
const (
	Answered Result = iota
	Refused         // by headrace
	Broken          // failed, by the provider
	Gone            // the client went away
)

// A Serving counts the requests of headrace serve, for its report and its page. Any goroutine may use it.
type Serving struct {
	began     time.Time
	provider  string
	simulated bool

	mu      sync.Mutex // guards what follows
	whole   *count
	clients map[string]*count
	classes map[string]*count
	lanes   map[string]*count
	codes   map[string]int

	span     observe.Sample // what has come since the latest sample
	waits    map[int]int    // the waits of span, by bucket
	samples  Samples
	sampled  time.Time
	waiting  int
	inFlight int
}

const (
	mostCounted = 64      // bounds the names of clients, classes and lanes that are counted apart, as in the metrics
	othersName  = "other" // stands for all further ones, and for one that is really named so
)

// count holds the counts of one client, class or lane, or of all requests.
type count struct {
	Tally
	waits, firsts spread
}

// NewServing returns the counts of a server that begins.
func NewServing(provider string, simulated bool, began time.Time) *Serving {
	return &Serving{
		began: began, sampled: began, provider: provider, simulated: simulated, whole: &count{}, clients: map[string]*count{}, classes: map[string]*count{}, lanes: map[string]*count{},
		codes: map[string]int{}, waits: map[int]int{},
	}
}

// Note counts a request that has ended.
func (s *Serving) Note(request *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole.add(request)
	countsOf(s.clients, request.Client).add(request)
	countsOf(s.classes, request.Class).add(request)
	if request.Lane != "" {
		countsOf(s.lanes, request.Lane).add(request)
	}
	switch request.Result {
	case Answered:
		s.span.Answered++
	case Refused:
		s.span.Throttled++
		s.codes[request.Code]++ // this program's own codes: a few
	default:
		s.span.Failed++
	}
	if request.Called {
		s.waits[observe.BucketOf(request.Waited)]++
	}
	if request.Priced {
		s.span.USD += request.USD
	}
}

// countsOf returns the counts of a name. The first mostCounted names have their own; all others share those
// of othersName.
func countsOf(countsByName map[string]*count, name string) *count {
	c := countsByName[name]
	if c == nil && len(countsByName) >= mostCounted {
		name = othersName
		c = countsByName[name]
	}
	if c == nil {
		c = &count{Tally: Tally{Name: words.Clip(name, maxName)}}
		countsByName[name] = c
	}
	return c
}

// add counts a request. Its wait counts only if a call was made for it.
func (c *count) add(request *Request) {
	switch request.Result {
	case Answered:
		c.Answered++
	case Refused:
		c.Refused++
	case Broken:
		c.Failed++
	case Gone:
		c.Gone++
	}
	if request.Called {
		c.waits.add(request.Waited.Milliseconds())
		if request.Priced {
			c.Priced++
		} else if request.Result == Answered {
			c.Unpriced++
		}
	}
	if request.First > 0 {
		c.firsts.add(request.First.Milliseconds())
	}
	if request.Priced {
		c.USD += request.USD
	}
}

// tally returns the figures of the counts.
func (c *count) tally() Tally {
	t := c.Tally
	t.WaitP50S, t.WaitP95S = c.waits.quantile(0.5), c.waits.quantile(0.95)
	t.FirstP50S, t.FirstP95S = c.firsts.quantile(0.5), c.firsts.quantile(0.95)
	t.USD = event.RoundUSD(t.USD)
	return t
}

// Sample ends a span of about a second. At its end so many requests are waiting, and so many calls in flight.
func (s *Serving) Sample(now time.Time, waiting, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample := s.span
	sample.At, sample.Span = now, now.Sub(s.sampled).Seconds()
	sample.Waiting, sample.InFlight, sample.InFlightMost = float64(waiting), float64(inFlight), inFlight
	for _, k := range slices.Sorted(maps.Keys(s.waits)) {
		sample.Latency = append(sample.Latency, observe.Bucket{Number: k, Count: s.waits[k]})
	}
	s.samples.Add(sample)
	s.span, s.sampled, s.waiting, s.inFlight = observe.Sample{}, now, waiting, inFlight
	clear(s.waits)
}

// Report returns the figures so far.
func (s *Serving) Report(now time.Time, state State) *Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Served{
		Report: version, Of: ofServe, Headrace: account.Version(), At: event.Stamp(now), State: state, Began: event.Stamp(s.began), UpS: event.Round(now.Sub(s.began).Seconds()),
		Provider: s.provider, Simulated: s.simulated, Waiting: s.waiting, InFlight: s.inFlight, All: s.whole.tally(), Clients: byRequests(s.clients), Classes: byRequests(s.classes), Lanes: byRequests(s.lanes), zone: time.Local,
	}
	for _, code := range byCount(s.codes) {
		r.Refusals = append(r.Refusals, Refusal{code, s.codes[code]})
	}
	for _, sample := range s.samples.list {
		r.Samples = append(r.Samples, toServedSample(sample))
	}
	return r
}

// byRequests returns the tallies, the one with the most requests first.
func byRequests(by map[string]*count) (list []Tally) {
	for _, c := range by {
		list = append(list, c.tally())
	}
	slices.SortFunc(list, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.Requests(), a.Requests()), cmp.Compare(a.Name, b.Name))
	})
	return list
}
