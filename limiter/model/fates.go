package model

import (
	"math"
	"math/bits"

	"github.com/headrace/headrace/limiter"
)

const (
	// fatesKept bounds the calls whose fate is awaited, to 64 KB. A refusal takes a
	// fraction of a second: these are some seconds of a thousand calls each.
	fatesKept = 1 << 12

	// fatesMost bounds the awaited fates: beyond it, the oldest counts as let in. The
	// difference to fatesKept is room for calls that leave at one moment, as time teaches only
	// once per moment.
	fatesMost = fatesKept / 4 * 3
)

// A fate is the fate of a call which has left: let in, or refused.
type fate struct {
	at      float64
	ticket  limiter.Ticket
	refused bool
	silent  bool // nothing follows from it
}

// An awaited fate belongs to one call, in a quarter of a line of a processor's cache. It keeps
// the parts of the call's ticket that its fate needs.
type awaited struct {
	at     float64
	pace   float32
	beside uint16
	capped bool
	silent bool
}

// fates awaits the fates of calls, in the order in which they left. If the fate of one is
// known, the fates of all before it are: a refusal takes as long as any other, so theirs would
// have come.
//
//	sent ──▶ [ open … open ] ──▶ known, in order: let in, unless it was muted
//
// A fate becomes known when a later call was refused, or once it is older than refusals take.
// Code that takes a refusal mutes the call, and books the refusal itself.
type fates struct {
	ring        []awaited // number n is at n%len; len is a power of two, at most fatesKept
	first, next uint64    // numbers of the oldest that is open, and of the next to leave
}

// add stores a call that leaves, and returns its number. If more calls leave at one moment than
// there is room for, the oldest are forgotten and never counted.
func (f *fates) add(at float64, t *limiter.Ticket) uint64 {
	if f.next == 0 {
		f.first, f.next = 1, 1
	}
	switch n := int(f.next - f.first); {
	case n < len(f.ring):
	case n < fatesKept:
		f.grow()
	default:
		f.first++
	}
	n := f.next
	*f.get(n) = awaited{at: at, pace: t.Pace, beside: t.Beside, capped: t.AtCap}
	f.next++
	return n
}

func (f *fates) grow() {
	wider := make([]awaited, max(4, 2*len(f.ring)))
	for n := f.first; n < f.next; n++ {
		wider[n&uint64(len(wider)-1)] = *f.get(n)
	}
	f.ring = wider
}

func (f *fates) get(n uint64) *awaited { return &f.ring[n&uint64(len(f.ring)-1)] }

// open reports whether the fate of call n is awaited.
func (f *fates) open(n uint64) bool { return n >= f.first && n < f.next && n > 0 }

// mute marks a call: nothing will follow from its fate.
func (f *fates) mute(n uint64) {
	if f.open(n) {
		f.get(n).silent = true
	}
}

// pop moves the oldest call into known, if its fate is known by now, and reports whether it did. A
// fate is known if the call left before number n or moment t, or if too many wait. pop writes known
// field by field: a copy of the whole would wait for what was just written.
func (f *fates) pop(n uint64, t float64, known *fate) bool {
	if f.first == f.next {
		return false
	}
	oldest := f.get(f.first)
	if f.first >= n && oldest.at >= t && f.next-f.first <= fatesMost {
		return false
	}
	known.at, known.refused, known.silent = oldest.at, false, oldest.silent
	known.ticket.Number, known.ticket.Factor, known.ticket.Longer, known.ticket.Pace = f.first, 0, 0, oldest.pace
	known.ticket.Beside, known.ticket.AtCap = oldest.beside, oldest.capped
	f.first++
	return true
}

// paceBins divide paces into quarters of an octave, from one call in sixteen seconds
// to four thousand in one.
const paceBins = tableBins

// paceBin returns the bin of a pace, 16 + ⌊4·log2⌋. Every call that was let in is booked by its
// pace, twice, and this takes a tenth of the time of a logarithm.
func paceBin(perSecond float64) int {
	x := math.Float64bits(max(perSecond, 1e-3))
	bin, part := 4*(int(x>>mantissa)-1023)+16, x&(1<<mantissa-1)
	switch {
	case part < quarters[0]:
	case part < quarters[1]:
		bin++
	case part < quarters[2]:
		bin += 2
	default:
		bin += 3
	}
	return min(paceBins-1, max(0, bin))
}

// mantissa is the number of bits that place a number within its octave.
const mantissa = 52

// quarters holds these bits where a quarter of an octave ends.
var quarters = [3]uint64{quarter(1), quarter(2), quarter(3)}

func quarter(n float64) uint64 { return math.Float64bits(math.Exp2(n/4)) & (1<<mantissa - 1) }

// paceOfBin returns the slowest pace of a bin.
func paceOfBin(bin int) float64 { return math.Exp2(float64(bin-16) / 4) }

// crowdBins divide numbers of calls: each to fifteen, then eighths of an octave, to a
// thousand and more. With quarters a cap of 96 would lie in a bin that is 17 wide.
const crowdBins = tableBins

func crowdBin(calls int) int {
	return int(crowdBinOf[max(0, min(calls, len(crowdBinOf)-1))])
}

// crowdBinOf holds the bin of each number of calls up to one in the last bin.
var crowdBinOf = func() (bins [1 << 10]uint8) {
	for calls := range bins {
		bins[calls] = uint8(calls)
		if calls >= 16 {
			bins[calls] = uint8(min(crowdBins-1, 16+int(8*math.Log2(float64(calls)/16))))
		}
	}
	return bins
}()

// tableMost is the count of a bin at which its counts are halved, so that old calls fade. 250
// calls tell a share of 10 % from one of 13 %.
const tableMost = 250

// A table counts calls and refusals by something that may be to blame for them. The zero value
// is empty. The first booked call makes its bins: many of thousands of lanes make only one
// call.
type table struct{ bins *[tableBins]counted }

const tableBins = 64

type counted struct{ calls, refused uint8 }

// at returns the counts of one bin.
func (t *table) at(bin int) counted { return t.upTo(bin + 1)[bin] }

// upTo returns the bins below one.
func (t *table) upTo(bin int) []counted {
	if t.bins == nil {
		return noBins[:bin]
	}
	return t.bins[:bin]
}

// noBins are the bins of every empty table. Nothing writes to them.
var noBins [tableBins]counted

// book counts a call in a bin. It first halves a bin that is full. So old calls fade, and a count
// fits into a byte.
func (t *table) book(bin int, refused bool) {
	if t.bins == nil {
		t.bins = new([tableBins]counted)
	}
	entry := &t.bins[bin]
	if entry.calls >= tableMost {
		entry.calls, entry.refused = entry.calls/2, entry.refused/2
	}
	entry.calls++
	if refused {
		entry.refused++
	}
}

// correct records that a call which was booked as let in had been refused.
func (t *table) correct(bin int) {
	if e := t.at(bin); e.refused < e.calls {
		t.bins[bin].refused++
	}
}

// below sums up the bins below one.
func (t *table) below(bin int) (calls, refused float64) {
	for _, e := range t.upTo(bin) {
		calls += float64(e.calls)
		refused += float64(e.refused)
	}
	return calls, refused
}

// fade scales the counts of the bins below that one down to most calls in all.
func (t *table) fade(bin int, most float64) {
	calls, _ := t.below(bin)
	if calls <= most {
		return
	}
	for i := range t.bins[:bin] {
		entry := &t.bins[i]
		entry.calls = uint8(math.Round(float64(entry.calls) * most / calls))
		entry.refused = min(entry.calls, uint8(math.Round(float64(entry.refused)*most/calls)))
	}
}

// gain returns how many nats better the refusals are explained if the bins from that one on have a
// share of their own. It returns 0 if that share is not the larger one.
func (t *table) gain(bin int) float64 {
	callsBelow, refusedBelow := t.below(bin)
	calls, refused := t.below(tableBins)
	if refusedBelow*(calls-callsBelow) >= (refused-refusedBelow)*callsBelow {
		return 0
	}
	return likelihood(callsBelow, refusedBelow) + likelihood(calls-callsBelow, refused-refusedBelow) - likelihood(calls, refused)
}

// likelihood returns the log likelihood of k refusals among n calls at their own share.
func likelihood(n, k float64) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	return k*math.Log(k/n) + (n-k)*math.Log(1-k/n)
}

// This part takes the fates of calls, in the order in which the calls left. It takes each
// lesson once, when it is known, and the explanations of refusals start from here.

// recentCalls is the number of the latest fates that are remembered one by one.
const recentCalls = 64

// takeFate learns from the fate of a call, in the order in which calls left. The fate became known
// at t.
func (m *Law) takeFate(t float64, f *fate) {
	m.recent <<= 1
	if f.refused {
		m.refusalRow++
		return
	}
	m.recent |= 1
	m.refusalRow = 0
	m.lastPace = float64(f.ticket.Pace)
	m.learnLetIn(t, f)
}

// learnLetIn learns from a call that was let in.
func (m *Law) learnLetIn(t float64, f *fate) {
	bin := paceBin(m.lastPace)
	m.chance.letInRow++
	m.book(bin, crowdBin(int(f.ticket.Beside)))
	if m.drought != nil && f.at > m.drought.began {
		m.endDrought(f.at, t)
	}
	if c := m.crowd.cap; c != nil && c.guess == nil && f.ticket.AtCap {
		c.raise(1/max(m.lastPace, 1e-3), float64(f.ticket.Beside))
	}
	if m.trial != nil {
		m.trial.count(f, bin)
		m.concludeTrial(f.at)
	}
}

// alike counts calls that were let in one after the other, at one pace and in company of one
// size, and are not booked yet. Nothing asks the tables before the first refusal, and most
// lanes are never refused.
type alike struct{ pace, crowd, calls uint8 }

// book enters a call that was let in into the tables of pace and company.
func (m *Law) book(pace, crowd int) {
	if a := &m.alike; m.refusals == 0 && int(a.pace) == pace && int(a.crowd) == crowd && a.calls < tableMost {
		a.calls++
		return
	}
	m.bookAlike()
	m.alike = alike{uint8(pace), uint8(crowd), 1}
	if m.refusals > 0 {
		m.bookAlike()
	}
}

// bookAlike enters the calls into the tables that were only counted so far.
func (m *Law) bookAlike() {
	a := m.alike
	for range a.calls {
		m.chance.paces.book(int(a.pace), false)
		m.crowd.byInFlight.book(int(a.crowd), false)
		m.crowd.byPace.book(int(a.pace), false)
	}
	m.alike = alike{}
}

// takeKnownFates takes all fates that are known by now. Those are the fates of calls before number
// n, and of calls whose refusal would have come by now.
func (m *Law) takeKnownFates(t float64, n uint64) {
	late := t - 2*m.refusalDelay
	var f fate
	for m.fates.pop(n, late, &f) {
		if !f.silent {
			m.takeFate(t, &f)
		}
	}
}

// refusedShare returns the refused share of the latest calls.
func (m *Law) refusedShare() float64 {
	return float64(recentCalls-bits.OnesCount64(m.recent)) / recentCalls
}

// takeRefusedFate takes the fate of a refused call in its turn. If it was already taken for let in,
// the tables are corrected.
func (m *Law) takeRefusedFate(t, sent float64, n *limiter.News) {
	if !m.fates.open(n.Ticket.Number) {
		m.chance.paces.correct(paceBin(float64(n.Ticket.Pace)))
		m.crowd.correct(&n.Ticket)
		return
	}
	m.fates.mute(n.Ticket.Number)
	f := fate{at: sent, ticket: n.Ticket, refused: true}
	m.takeFate(t, &f)
	m.crowd.book(&n.Ticket, true)
}

// Chance explains refusals, too. It strikes at any pace, so the share that is refused at slower
// paces is the share that it may be blamed for at this one.
const (
	leastShare  = 0.003 // of calls: less is not worth reckoning with
	mostShare   = 0.5   // more is nobody's chance
	doubtCalls  = 10    // a share is thinned by so many calls, or the first refusal would be one of one
	fewRefusals = 2     // of an item count: with 1 a share of 0.45 is underestimated, with 3 a silent limit on tokens refuses 4 %
	ownCalls    = 60    // with so many calls of its own a pace has a say in its share
	alarmNats   = 6.0   // such a sum has about e⁶ = 400 calls between two false alarms
	alarmPace   = 10.0  // calls per second from which on alarms become rarer, or they were more per second
	creepMargin = 0.03  // a little more than chance: twice its share, and this
)

// chance knows what share of calls is refused at which pace, and sounds the alarm when
// refusals come thicker than that.
//
//	flood  rises fast where every second call is refused
//	creep  rises slowly where a little more is refused than chance explains
//
// Both are cumulative sums of log-likelihoods, never under 0. Invariant: what is booked
// here was let in, or refused without another explanation.
type chance struct {
	paces        table
	flood, creep float64
	letInRow     float64 // calls let in since the latest refusal
	calls        float64 // since creep was 0
	refused      float64 // of those
}

// share returns the share of calls for whose refusal chance may be blamed at a pace. It is the
// share refused at slower paces, and at most the share at this one.
func (c *chance) share(bin int) float64 {
	calls, refused := c.paces.below(bin)
	if refused < 1 {
		return 0
	}
	s := min(mostShare, refused/(calls+doubtCalls))
	if own := c.paces.at(bin); own.calls >= ownCalls {
		s = min(s, float64(own.refused)/float64(own.calls))
	}
	return s
}

// bookRefusal books a refusal as one by chance, unless its item was refused often. Chance strikes
// all items alike. A limit on tokens strikes large items again and again, and would pass for
// chance.
func (c *chance) bookRefusal(bin int, n *limiter.News) {
	if n.Refusals < fewRefusals {
		c.paces.book(bin, true)
	}
}

// soundsAlarm counts a refusal, and reports whether refusals come too thick for chance to explain
// them.
func (c *chance) soundsAlarm(bin int, pace float64) (alarm bool) {
	usual := max(leastShare, c.share(bin))
	floodShare, creepShare := (1+usual)/2, min(0.97, 2*usual+creepMargin)
	c.flood = max(0, c.flood+c.letInRow*lessLikely(usual, floodShare)) + math.Log(floodShare/usual)
	if c.creep += c.letInRow * lessLikely(usual, creepShare); c.creep <= 0 {
		c.creep, c.calls, c.refused = 0, 0, 0
	} else {
		c.calls += c.letInRow
	}
	c.creep += math.Log(creepShare / usual)
	c.calls++
	c.refused++
	c.letInRow = 0
	extraNats := math.Log(max(1, pace/alarmPace))
	return c.flood > alarmNats+alarmNats*usual+extraNats || c.creep > alarmNats+extraNats
}

// lessLikely returns how far a call that was let in speaks for the larger share q and against
// p, in nats; it is negative.
func lessLikely(p, q float64) float64 { return math.Log((1 - q) / (1 - p)) }

// resetSums empties the sums once their refusals are explained.
func (c *chance) resetSums() { c.flood, c.creep, c.calls, c.refused = 0, 0, 0, 0 }

// excess returns the share of calls that were refused since creep began.
func (c *chance) excess() float64 {
	return min(0.9, max(0.02, (c.refused-1.5)/(c.calls+1)))
}
