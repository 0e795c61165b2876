//go:build linux

package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
	"github.com/jonboulle/clockwork"
)

// A judge is the simulated provider, and books of each call: who made it and what became of
// it. Its time starts with the first call, so that what is to happen later does not depend on
// how long the processes take to come up.
type judge struct {
	config sim.Config
	url    string
	// refuses answers a call as the account of its caller would, and is not in the books; nil: none does.
	refuses func(w http.ResponseWriter, who string) bool

	mu     sync.Mutex // the calls come at once
	model  *sim.Server
	began  time.Time
	calls  []*call
	open   map[*call]bool
	waits  []waiting
	server *httptest.Server
}

// A call is one request as the provider saw it.
type call struct {
	who    string // whose: the name in the path
	prompt string
	at     time.Time // when it had arrived, whole
	ended  time.Time // zero: it is in the provider's hands
	status int       // of the answer; 0 if the caller left before it
	// input and output are the tokens that the answer says, whether or not the caller was there to hear.
	input, output int
}

// refused says that the provider's limit turned it away.
func (c *call) refused() bool { return c.status == http.StatusTooManyRequests }

// bought says that the provider worked on it, whether or not the caller was there to hear.
func (c *call) bought() bool { return c.status == http.StatusOK || c.status == 0 }

// waiting is somebody who waits for so many calls to have come.
type waiting struct {
	calls int
	ring  chan struct{}
}

func newJudge(t *testing.T, config sim.Config) *judge {
	t.Helper()
	config.TrackIDs = true
	j := &judge{config: config, open: map[*call]bool{}}
	j.server = httptest.NewServer(j)
	j.url = j.server.URL
	t.Cleanup(j.server.Close)
	return j
}

// base returns the base URL for a caller of that name.
func (j *judge) base(who string) string { return j.url + "/by/" + who + "/v1" }

// ServeHTTP writes a call down and hands it on.
func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, path, ok := caller(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // its caller was killed while it sent: it has asked nothing
		return
	}
	if j.refuses != nil && j.refuses(w, who) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.URL.Path = path
	c := j.enter(who, promptOf(body))
	out := &statusOf{ResponseWriter: w}
	defer func() { j.leave(r.Context(), c, out) }()
	j.model.ServeHTTP(out, r)
}

// caller takes the name off a path.
func caller(path string) (who, rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, "/by/")
	if !ok {
		return "", "", false
	}
	who, rest, ok = strings.Cut(rest, "/")
	return who, "/" + rest, ok
}

func (j *judge) enter(who, prompt string) *call {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.model == nil {
		j.model, j.began = sim.New(j.config, clockwork.NewRealClock()), time.Now()
	}
	c := &call{who: who, prompt: prompt, at: time.Now()}
	j.calls = append(j.calls, c)
	j.open[c] = true
	j.waits = rung(j.waits, len(j.calls))
	return c
}

// rung wakes those who have waited for so many calls.
func rung(waits []waiting, calls int) (left []waiting) {
	for _, w := range waits {
		if calls >= w.calls {
			close(w.ring)
		} else {
			left = append(left, w)
		}
	}
	return left
}

// leave ends a call. A caller that is gone has not heard the answer, whatever was written.
func (j *judge) leave(caller context.Context, c *call, out *statusOf) {
	input, output := usageOf(out.text)
	j.mu.Lock()
	defer j.mu.Unlock()
	c.ended = time.Now()
	c.input, c.output = input, output
	if caller.Err() == nil {
		c.status = out.status
	}
	delete(j.open, c)
}

// handsOf counts the calls of somebody that the provider is working on.
func (j *judge) handsOf(who string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for c := range j.open {
		if c.who == who {
			n++
		}
	}
	return n
}

// after is closed when so many calls have come, since the beginning.
func (j *judge) after(calls int) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	ring := make(chan struct{})
	j.waits = rung(append(j.waits, waiting{calls: calls, ring: ring}), len(j.calls))
	return ring
}

// asked returns the number of calls that have come.
func (j *judge) asked() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls)
}

// book is a copy of all calls, in the order in which they came.
func (j *judge) book() []call {
	j.mu.Lock()
	defer j.mu.Unlock()
	calls := make([]call, len(j.calls))
	for i, c := range j.calls {
		calls[i] = *c
	}
	return calls
}

// promptOf is the text that an answer is to.
func promptOf(body []byte) string {
	var asked struct {
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 {
		return ""
	}
	return asked.Messages[len(asked.Messages)-1].Content
}

// statusOf remembers the status that was written, and the text.
type statusOf struct {
	http.ResponseWriter
	status int
	text   []byte
}

func (s *statusOf) Write(text []byte) (int, error) {
	s.text = append(s.text, text...)
	return s.ResponseWriter.Write(text)
}

func (s *statusOf) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the simulated provider break a connection off.
func (s *statusOf) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// freePort is one on which nobody listens. It lies below those that the system gives to
// clients' own ends, or a client might have it before the process that is to listen on it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		at := net.JoinHostPort("127.0.0.1", ports.next())
		if l, err := net.Listen("tcp", at); err == nil {
			_ = l.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}

// A blow is what was done to a process: from when, and until when it could not go on.
type blow struct {
	kind  string // kill, freeze, cut
	who   string
	at    time.Time
	until time.Time // of a kill: when it was struck; zero: it has not ended
	hands int       // its calls that the provider was working on
	may   int       // how many of its calls may be made again
	// saved are the questions whose answers were in the store when it was struck; nil: the time decides (unsaved).
	saved map[string]bool
}

// An absence is a time in which a worker could not reach the keeper.
type absence struct {
	who         string
	from, until time.Time
}

// An audit compares the judge's book with the blows and absences.
type audit struct {
	asked    map[string]int // how often each question stands in the input
	blows    []blow
	absences []absence
	// late is the most by which this machine was seen to be behind its clock. Instants that are
	// compared are read by two processes, and a machine that is busy reads them late.
	late time.Duration
}

const (
	// unsaved is the time before a blow in which an answer may not yet be in a journal. The journal is synced every 10
	// ms, and this leaves room for a slow disk.
	unsaved = time.Second
	// stops is within what a worker that lost the keeper makes no more calls.
	stops = 2 * time.Second
)

// A verdict is what an audit finds.
type verdict struct {
	calls, refused  int
	repeated        int      // calls that were bought beyond one for each item
	hands, may      int      // what was in flight at the blows; what may have been
	inexcusable     []string // repeats for which no blow is an excuse
	afterwards      []string // calls of workers that had lost the keeper for too long
	lastAfterCutOff time.Duration
	back            []time.Duration // how long after each absence the first call of anybody came
}

// judge reads the book.
func (a *audit) judge(book []call) (v verdict) {
	v.calls = len(book)
	byPrompt := map[string][]call{}
	for _, c := range book {
		if c.refused() {
			v.refused++
		}
		if c.bought() {
			byPrompt[c.prompt] = append(byPrompt[c.prompt], c)
		}
	}
	atWire := map[int]bool{}
	for prompt, calls := range byPrompt {
		v.repeated += max(0, len(calls)-a.asked[prompt])
		v.inexcusable = append(v.inexcusable, a.withoutExcuse(prompt, calls, atWire)...)
	}
	for _, b := range a.blows {
		v.hands += b.hands
		v.may += b.may
	}
	a.silence(book, &v)
	v.back = a.returns(book)
	slices.Sort(v.inexcusable)
	return v
}

// withoutExcuse are the calls for a question that need not have been made again: each but the
// last must have been lost with somebody who was struck, or bought while a frozen worker was about to make it.
// A question that several items ask is only counted. atWire are the freezes that have excused a call.
func (a *audit) withoutExcuse(prompt string, calls []call, atWire map[int]bool) (complaints []string) {
	if a.asked[prompt] != 1 {
		return nil
	}
	for i, c := range calls[:len(calls)-1] {
		excused := slices.ContainsFunc(a.blows, func(b blow) bool { return a.excuses(b, c) })
		if !excused && !a.stoodAtWire(c, calls[i+1], atWire) {
			next := calls[i+1]
			complaints = append(complaints, fmt.Sprintf("%q: call %d of %d, of %s at %s, status %d, took %v; the next is of %s at %s",
				prompt, i+1, len(calls), c.who, c.at.Format(clockTime), c.status, c.ended.Sub(c.at), next.who, next.at.Format(clockTime)))
		}
	}
	return complaints
}

// excuses says that a call was in its caller's hands, or just out of them, when he was struck. What was said to one who
// was cut off may be lost: then he calls for as long as a permit lives before he looks, as in package claim's worlds.
func (a *audit) excuses(b blow, c call) bool {
	slack := a.late
	if b.kind == string(cutting) {
		slack += stops
	}
	began := b.until.IsZero() || c.at.Before(b.until.Add(slack))
	ended := !c.ended.IsZero() && c.ended.Before(b.at.Add(-unsaved-a.late))
	if b.saved != nil {
		ended = b.saved[c.prompt]
	}
	return b.who == c.who && began && !ended
}

// stoodAtWire says that a call was bought while the worker that made the next one was frozen between its last look at its
// lease and the wire. Nothing can call that back: it leaves at the thaw. One such call for each freeze is excused, as a
// worker that does not look makes as many as it has places.
func (a *audit) stoodAtWire(c, next call, atWire map[int]bool) bool {
	i := slices.IndexFunc(a.blows, func(b blow) bool {
		return b.kind == string(freezing) && b.who == next.who && b.who != c.who && !b.until.IsZero() &&
			c.at.After(b.at) && c.at.Before(b.until) && !next.at.Before(b.until) && next.at.Before(b.until.Add(a.late))
	})
	if i < 0 || atWire[i] {
		return false
	}
	atWire[i] = true
	return true
}

// silence finds calls of those that had lost the keeper.
func (a *audit) silence(book []call, v *verdict) {
	for _, c := range book {
		for _, lost := range a.absences {
			if lost.who != c.who || c.at.Before(lost.from) || c.at.After(lost.until) {
				continue
			}
			since := c.at.Sub(lost.from)
			v.lastAfterCutOff = max(v.lastAfterCutOff, since)
			if since > stops+a.late {
				v.afterwards = append(v.afterwards, fmt.Sprintf("%s called %v after it had lost the keeper", c.who, since))
			}
		}
	}
}

// returns lists the times from the end of each absence to the next call; absences that ended
// together count once.
func (a *audit) returns(book []call) (all []time.Duration) {
	for i, lost := range a.absences {
		if i > 0 && lost.until.Sub(a.absences[i-1].until) < time.Millisecond {
			continue
		}
		next := slices.IndexFunc(book, func(c call) bool { return c.at.After(lost.until) })
		if next >= 0 {
			all = append(all, book[next].at.Sub(lost.until).Round(10*time.Millisecond))
		}
	}
	return all
}
