package coordinator

import (
	"runtime"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/jonboulle/clockwork"
)

// loop holds the owner's state. It lives in a variable of Run, so that no other goroutine can
// name it.
//
// The owner waits in one place, the select in next, and there for anything. Its sends never
// block. Grants have room by the machine's promise, and answers by the capacity of one. News is
// dropped if it has no room.
type loop struct {
	c           *Coordinator
	machine     *machine.Machine
	sessions    map[machine.RunID]*Session
	latestID    machine.RunID
	newsReaders map[*Session]bool // those that hear news
	mayOffer    []*Session        // those that may offer more since the latest pass, perhaps
	closing     bool
	watches     []*Watch

	timer   clockwork.Timer
	timerAt time.Time // when the timer will fire; zero: it will not
}

// newLoop returns the state with which the owner begins. Its timer is stopped.
func newLoop(c *Coordinator) *loop {
	// The length does not matter: the timer is stopped before it can tell anything,
	// and a tick that slips through says only that time passed.
	timer := c.cfg.Clock.NewTimer(time.Hour)
	timer.Stop()
	return &loop{
		c: c, machine: machine.New(c.cfg.Machine),
		sessions: map[machine.RunID]*Session{}, newsReaders: map[*Session]bool{}, timer: timer,
	}
}

// run makes passes until the coordinator is closed and the last run is over. A pass reads the clock
// once, and judges together all messages that arrive together.
func (l *loop) run() {
	for !l.closing || len(l.sessions) > 0 {
		now := l.next()
		l.absorb(now)
		ready := l.machine.Ready(now)
		l.dispatch(ready)
		l.allowOffers()
		l.setTimer(now, ready.WakeAt)
	}
	l.leave(l.c.cfg.Clock.Now())
}

// next waits for a message or the timer, handles the message, and returns the time.
//
// The message that wakes the owner is rarely alone: workers whose calls ended together are
// about to leave theirs. One step back lets those run that could, and the pass then serves them
// all. Without it sixteen quick workers wake the owner for each of their items, and an item
// costs twice as much. It is no wait: where nobody else could run it returns at once.
func (l *loop) next() time.Time {
	select {
	case m := <-l.c.mailbox:
		runtime.Gosched()
		now := l.readClock()
		l.handle(now, m)
		return now
	case <-l.timer.Chan():
		now := l.readClock()
		l.timerAt = time.Time{}
		return now
	}
}

const (
	// minSleepGap is the delay of a wake-up that says that the computer slept: a busy machine is
	// not as late.
	minSleepGap = 5 * time.Second
	// beatEvery is the farthest that the alarm lies ahead while there is a run. Otherwise a
	// sleep would not show where only the ends of calls are awaited.
	beatEvery = 10 * time.Second
)

// readClock returns the time. If that is far beyond the alarm, it tells the machine that the
// computer slept, as nothing of this process ran in between. Clocks that stand still while a
// computer sleeps show no gap, so the machine books none.
func (l *loop) readClock() time.Time {
	now := l.c.cfg.Clock.Now()
	if !l.timerAt.IsZero() && now.Sub(l.timerAt) >= minSleepGap {
		l.machine.Step(now, machine.Slept(l.timerAt))
		l.timerAt = time.Time{}
	}
	return now
}

// absorb handles the other messages that have arrived, at most maxBurst of them.
func (l *loop) absorb(now time.Time) {
	for range maxBurst {
		select {
		case m := <-l.c.mailbox:
			l.handle(now, m)
		default:
			return
		}
	}
}

// handle passes the fact in a message to the machine, or answers its question. It never blocks, as
// each channel for an answer has room.
func (l *loop) handle(now time.Time, m message) {
	switch q := m.question.(type) {
	case nil:
		l.machine.Step(now, m.fact)
	case offerQuestion:
		q.session.hasLeave = false
		l.mayOffer = append(l.mayOffer, q.session)
		l.machine.Step(now, machine.Offered(q.session.id, q.items))
	case openQuestion:
		q.reply <- l.open(now, q.config, q.muted)
	case undoOpenQuestion:
		l.undoOpen(now, q.reply)
	case statusQuestion:
		q.reply <- l.machine.StatusOf(now, q.lanes, q.run)
	case watchQuestion:
		l.watches = append(l.watches, q.watch)
	case memoryQuestion:
		q.reply <- l.memory(now)
	case closeQuestion:
		l.close(now)
	}
}

// open opens a run and returns its session; nil: the coordinator is closing. The session has
// room for as many grants as its run may have calls in flight, so dispatch never waits.
func (l *loop) open(now time.Time, cfg machine.RunConfig, muted bool) *Session {
	if l.closing {
		return nil
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = machine.DefaultConcurrency
	}
	l.latestID++
	s := &Session{
		c: l.c, id: l.latestID,
		work:         make(chan machine.Grant, max(cfg.Concurrency, cfg.MostConcurrency)),
		leaveToOffer: make(chan struct{}, 1),
		stranded:     make(chan struct{}),
		closed:       make(chan struct{}),
	}
	l.sessions[s.id] = s
	if !muted {
		s.news, l.newsReaders[s] = make(chan News, newsSize), true
	}
	l.mayOffer = append(l.mayOffer, s)
	l.machine.Step(now, machine.RunOpened(s.id, cfg))
	return s
}

// undoOpen ends a run whose caller did not wait for its session. The answer is in the channel, as
// it was put there before this message was handled.
func (l *loop) undoOpen(now time.Time, reply chan *Session) {
	if s := <-reply; s != nil {
		l.machine.Step(now, machine.InputEnded(s.id))
	}
}

// close drains the open runs, and tells each. Otherwise the feed of an endless input would see its
// items come back for ever.
func (l *loop) close(now time.Time) {
	if l.closing {
		return
	}
	l.closing = true
	for id, s := range l.sessions {
		close(s.closed)
		l.machine.Step(now, machine.Drained(id))
	}
}

// dispatch carries out the machine's decisions: it sends grants and news, and ends runs.
func (l *loop) dispatch(ready machine.Ready) {
	for _, g := range ready.Grants {
		s := l.sessions[g.Run]
		s.work <- g // has room: the machine keeps to the run's concurrency
		if !s.hasLeave {
			l.mayOffer = append(l.mayOffer, s)
		}
	}
	for _, t := range ready.Transitions {
		l.tellAll(News{Transition: &t})
	}
	for _, w := range ready.LongWaits {
		l.tellWait(w)
	}
	if len(ready.Words) > 0 {
		l.sendWords(ready.Words)
	}
	for _, s := range ready.Stranded {
		l.strand(s)
	}
	for _, f := range ready.Finished {
		l.finish(f)
	}
	if len(ready.Transitions) > 0 || ready.Lengthened {
		l.tellWatches()
	}
}

// allowOffers gives leave for one more offer to each run that holds less than it may and has no
// unused leave. The bound is each run's own. With one for all, a run whose lane cools would fill
// it, and keep out a run whose lane is well.
//
// It looks only at runs with a change: they were opened, they offered, or they got a grant.
func (l *loop) allowOffers() {
	for i, s := range l.mayOffer {
		l.mayOffer[i] = nil
		if !s.hasLeave && l.machine.WaitingOf(s.id) < l.c.cfg.ReadAhead {
			s.hasLeave = true
			s.leaveToOffer <- struct{}{} // has room: the leave before it was used
		}
	}
	l.mayOffer = l.mayOffer[:0]
}

// tellAll sends news about a lane to all runs that want news.
func (l *loop) tellAll(n News) {
	for s := range l.newsReaders {
		s.tell(n)
	}
}

// tellWait sends news of a long wait: a lane's to all runs, an item's only to its own.
func (l *loop) tellWait(w machine.LongWait) {
	if !w.Own {
		l.tellAll(News{LongWait: &w})
		return
	}
	if s := l.sessions[w.Run]; l.newsReaders[s] { // it is there: a run with an item that waits is not over
		s.tell(News{LongWait: &w})
	}
}

// tell sends news to the run if there is room for it, and else counts it as missed.
func (s *Session) tell(n News) {
	select {
	case s.news <- n:
	default:
		s.missed++
	}
}

func (l *loop) strand(st machine.Stranding) {
	s := l.sessions[st.Run]
	s.cause = st.Cause
	close(s.stranded)
}

// finish ends the session of a run that is over, and closes its channels.
func (l *loop) finish(f machine.Finish) {
	s := l.sessions[f.Run]
	s.finish = f
	delete(l.sessions, f.Run)
	delete(l.newsReaders, s)
	if s.news != nil {
		close(s.news)
	}
	close(s.work)
}

// setTimer sets the one timer. A tick says only that time passed, and the machine finds out what
// that means. So an early, late or double tick does no harm.
func (l *loop) setTimer(now, at time.Time) {
	if len(l.sessions) > 0 {
		at = l.nextTick(now, at)
	}
	if at.Equal(l.timerAt) {
		return
	}
	l.timerAt = at
	if at.IsZero() {
		l.timer.Stop()
		return
	}
	l.timer.Reset(max(0, at.Sub(now)))
}

// nextTick returns the machine's wake-up, or an earlier moment if that is far away. It keeps a
// timer that is set to such a moment, so that not each pass sets it anew.
func (l *loop) nextTick(now, at time.Time) time.Time {
	switch last := now.Add(beatEvery); {
	case !at.IsZero() && !at.After(last):
		return at
	case l.timerAt.After(now) && !l.timerAt.After(last):
		return l.timerAt
	default:
		return last
	}
}

// A message to the loop is a fact for the machine, or one of the questions below. Each question
// that wants an answer carries the channel for it, of capacity one, so that answering never
// makes the loop wait.
type message struct {
	fact     machine.Event
	question any // nil, or one of the types below
}

// offerQuestion brings items of a run, by the leave that the run got. Sent by Offer.
type offerQuestion struct {
	session *Session
	items   []*machine.Item
}

// openQuestion asks for a session. Sent by Open and OpenMuted.
type openQuestion struct {
	config machine.RunConfig
	muted  bool          // it wants no news
	reply  chan *Session // nil: the coordinator is closing
}

// undoOpenQuestion takes an openQuestion back whose caller has left: nobody would ever end that
// run. It comes after the question, by the same way, so the answer is in the channel when the
// loop hears it. Sent by Open.
type undoOpenQuestion struct{ reply chan *Session }

// statusQuestion asks for a picture. Sent by Status.
type statusQuestion struct {
	lanes int
	run   machine.RunID // who asks; 0: nobody's session, as runs count from 1
	reply chan machine.Status
}

// closeQuestion asks for the end; the answer is that the loop returns. Sent by
// Close.
type closeQuestion struct{}

// sendWords hands on the words of laws to the outside. It takes back words that were not received
// yet, and sends them along: the channel then has room, as nobody else sends. It keeps only the
// latest word of each lane, so at most as many words wait as there are lanes.
//
// An example: the lane says a, and nobody receives it. The lane says b. sendWords takes a back and
// drops it, and b is received. If a was received just before, there is nothing to take back,
// and b is received next.
func (l *loop) sendWords(words []machine.Word) {
	select {
	case old := <-l.c.words:
		l.c.words <- mergeWords(old, words)
	default:
		l.c.words <- slices.Clone(words) // the machine uses its slice again
	}
}

// mergeWords adds new words to old ones. A new word replaces the old one of its lane.
func mergeWords(old, words []machine.Word) []machine.Word {
	spoke := make(map[string]bool, len(words))
	for _, w := range words {
		spoke[w.Lane] = true
	}
	old = slices.DeleteFunc(old, func(w machine.Word) bool { return spoke[w.Lane] })
	return append(old, words...)
}
