//go:build linux

package tests

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// weather goes through the steps of a schedule until there are no more or the work is done,
// and then makes everybody whole again.
func (f *fleet) weather(steps []step, done <-chan struct{}) {
	f.t.Helper()
	ends := map[int]func(){}
	began := time.Now()
	for i, s := range steps {
		if !waits(done, began.Add(s.at)) || f.died() != "" {
			break // and finishes will say who
		}
		if s.begin < 0 {
			ends[i] = f.begin(s)
			continue
		}
		if end := ends[s.begin]; end != nil {
			end()
		}
		delete(ends, s.begin)
	}
	for _, end := range ends {
		if end != nil {
			end()
		}
	}
}

// begun waits until so many calls have come. It fails the test if they do not.
func (f *fleet) begun(calls int, customer *process) {
	f.t.Helper()
	timer := time.NewTimer(comeUp)
	defer timer.Stop()
	select {
	case <-f.judge.after(calls):
	case <-customer.over:
	case <-timer.C:
		for _, w := range f.workers {
			f.t.Logf("%s is running: %v (code %d)", w.name, w.running(), w.code)
		}
		f.t.Fatalf("%d calls in %v", f.judge.asked(), comeUp)
	}
}

// waits until an instant, and says whether it came before the end.
func waits(done <-chan struct{}, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}

// stuck is for how long nothing may happen at the provider while there is work: many times
// whatever a lease, a redelivery and a restart take.
const stuck = 2 * time.Minute

// finishes waits for a customer, and gives its exit code. It fails the test if the provider is
// asked nothing for too long.
func (f *fleet) finishes(p *process) int {
	f.t.Helper()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	asked, since := f.judge.asked(), time.Now()
	for {
		select {
		case <-p.over:
			return p.code
		case <-ticker.C:
		}
		if dead := f.died(); dead != "" {
			f.t.Fatalf("%s has ended by itself", dead)
		}
		if n := f.judge.asked(); n != asked {
			asked, since = n, time.Now()
		}
		if time.Since(since) > stuck {
			f.t.Fatalf("nothing has been asked for %v: %d calls so far", stuck, asked)
		}
	}
}

// died is one that ended though nobody struck it: none, if "".
func (f *fleet) died() string {
	for _, h := range f.hubs {
		if !h.struck && !h.running() {
			return h.name
		}
	}
	for _, w := range f.workers {
		if !w.struck && !w.running() {
			return w.name
		}
	}
	return ""
}

// judged reads the books at the end, and fails the test if anything was done that must not be.
func (f *fleet) judged(refusals bool) verdict {
	f.t.Helper()
	f.audit.late = f.late.allowance()
	v := f.audit.judge(f.judge.book())
	f.t.Logf("%d calls, %d refused, %d repeated; in flight at %d blows %d, of %d that may have been; last call of one that had lost the keeper after %v (allowed %v); first call after each absence %v; %v",
		v.calls, v.refused, v.repeated, len(f.audit.blows), v.hands, v.may, v.lastAfterCutOff, stops+f.audit.late, v.back, f.strikes)
	complain(f.t, "call that need not have been repeated", v.inexcusable)
	complain(f.t, "call without the keeper", v.afterwards)
	if v.repeated > v.may {
		f.t.Errorf("%d calls repeated, %d may have been in flight at the blows", v.repeated, v.may)
	}
	if v.refused > f.late.bunched(rate) && !refusals {
		f.t.Errorf("%d refusals", v.refused)
	}
	if f.t.Failed() {
		f.t.Logf("by the seconds since %s:\n%s", f.judge.began.Format(clockTime), f.story())
	}
	return v
}

// clockTime is the format of instants.
const clockTime = "15:04:05.000"

// story lists the beginnings of waves of refusals, and the times of blows and healing.
func (f *fleet) story() string {
	var story []string
	at := func(t time.Time, what string) {
		story = append(story, fmt.Sprintf("%9.3f %s", t.Sub(f.judge.began).Seconds(), what))
	}
	calls, refused := map[int]int{}, map[int]int{} // by tenths of a second
	for _, c := range f.judge.book() {
		tenth := int(c.at.Sub(f.judge.began) / (time.Second / 10))
		if calls[tenth]++; c.refused() {
			refused[tenth]++
		}
	}
	for tenth, n := range refused {
		at(f.judge.began.Add(time.Duration(tenth)*time.Second/10), fmt.Sprintf("%d of %d calls are refused, after %d calls in the second before", n, calls[tenth], sumOf(calls, tenth-10, tenth)))
	}
	epochs, _ := filepath.Glob(filepath.Join(f.home, "keeper", "epoch-*")) // the pattern is good
	for _, e := range epochs {
		if info, err := os.Stat(e); err == nil {
			name, _ := os.ReadFile(e)
			at(info.ModTime(), fmt.Sprintf("a keeper begins: %s %s", filepath.Base(e), bytes.TrimSpace(name)))
		}
	}
	for _, b := range f.audit.blows {
		at(b.at, b.kind+" "+b.who)
		at(b.until, b.who+" is whole again")
	}
	for _, a := range f.audit.absences {
		at(a.from, a.who+" cannot reach the keeper")
	}
	slices.Sort(story) // the numbers are as wide as each other
	return strings.Join(story, "\n")
}

func sumOf(of map[int]int, from, until int) (sum int) {
	for i := from; i < until; i++ {
		sum += of[i]
	}
	return sum
}

func complain(t *testing.T, what string, complaints []string) {
	t.Helper()
	for _, one := range complaints[:min(shown, len(complaints))] {
		t.Errorf("%s: %s", what, one)
	}
	if len(complaints) > shown {
		t.Errorf("%s: %d in all", what, len(complaints))
	}
}

// reference returns one process's output for the same file, and its exit code.
func (f *fleet) reference(q *questionnaire, name string) (output string, code int) {
	f.t.Helper()
	one := newJudge(f.t, simple)
	output = f.dir + "/" + name + ".one.jsonl"
	_, code = f.run("run", q.path, "-o", output, "--order", "input", "--base-url", one.base("one"), "--progress", "none")
	return output, code
}

// A lateness returns how far this machine has fallen behind its clock, at most.
type lateness func() time.Duration

// watchEvery is the time between two looks at the clock: some scheduling quanta of a busy machine.
const watchEvery = 10 * time.Millisecond

// bunched returns how many calls a provider of this rate may refuse because this machine stood still: all calls held up
// meanwhile leave at once when it goes on. A stall within jitter causes no refusal: laws keep half a second of refill
// at the least for that.
func (l lateness) bunched(rate float64) int {
	most := l()
	if most < jitter {
		return 0
	}
	return int(rate * most.Seconds())
}

// jitter is the delay of a machine that has little else to do. Beyond it the tests assert nothing of what the machine
// can do in a second.
const jitter = 200 * time.Millisecond

// allowance bounds the delay of an instant's reading, by the delays seen so far. It is twice the worst, as two
// processes read, and a quantum more for what the watch itself missed.
func (l lateness) allowance() time.Duration {
	return 2*l() + 100*time.Millisecond
}

// A target is what a blow is meant for.
type target string

const (
	aWorker   target = "worker"
	theKeeper target = "keeper"
	aHub      target = "hub"
)

// A harm is what is done to it.
type harm string

const (
	killing  harm = "kill"    // and started again after a while
	freezing harm = "freeze"  // and thawed after a while
	wiping   harm = "wipe"    // killed, and its folder deleted
	tearing  harm = "tear"    // killed, and its files cut short
	flipping harm = "flip"    // killed, and bits of its files flipped
	cutting  harm = "cut"     // its link swallows or holds all, or one direction
	slowing  harm = "slow"    // its link is as long as a lease
	draining harm = "drain"   // SIGTERM: it finishes what flies, and is started again
	staying  harm = "nothing" // for the steps in which something ends
)

// A habit is one kind of blow that comes again and again.
type habit struct {
	target target
	harm   harm
	every  time.Duration // on average
	lasts  time.Duration // how long it is down, frozen or cut; on average
}

// A step is one thing that a storm does, at an instant counted from its start.
type step struct {
	at     time.Duration
	target target
	harm   harm
	pick   uint64 // which of those that can be struck
	begin  int    // of the step that this one ends; -1: it begins something
	how    uint64 // its choices, such as the direction of a cut
}

// schedule returns a storm of these habits, drawn from chance alone. Blows of one habit come
// between half and one and a half times its time apart and last as unevenly.
func schedule(chance *rand.Rand, length time.Duration, habits ...habit) (steps []step) {
	for _, h := range habits {
		for at := around(chance, h.every); at < length; at += around(chance, h.every) {
			begin := step{at: at, target: h.target, harm: h.harm, pick: chance.Uint64(), begin: -1, how: chance.Uint64()}
			steps = append(steps, begin, step{at: at + around(chance, h.lasts), harm: staying, begin: len(steps)})
		}
	}
	return inOrder(steps)
}

// around is between half and one and a half times d.
func around(chance *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(chance.Int64N(int64(d)+1))
}

// inOrder sorts the steps by time, and lets those that end something point to its new place.
func inOrder(steps []step) []step {
	places := make([]int, len(steps))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(steps[a].at, steps[b].at) })
	sorted, moved := make([]step, len(steps)), make([]int, len(steps))
	for to, from := range places {
		sorted[to], moved[from] = steps[from], to
	}
	for i, s := range sorted {
		if s.begin >= 0 {
			sorted[i].begin = moved[s.begin]
		}
	}
	return sorted
}

// begin does what a step says to one of those whom it may strike, and gives what ends it: nil
// if there is nobody to be struck.
func (f *fleet) begin(s step) (end func()) {
	switch s.target {
	case aHub:
		if h := pickHub(f.hubs, s.pick); h != nil {
			return f.strikeHub(h, s)
		}
	case theKeeper:
		if w := f.keeper(); w != nil && !w.struck && w.running() {
			return f.strikeWorker(w, s)
		}
	default:
		if w := pickWorker(f.workers, s.pick); w != nil {
			return f.strikeWorker(w, s)
		}
	}
	return nil
}

func pickHub(hubs []*hub, pick uint64) *hub {
	h := hubs[pick%uint64(len(hubs))]
	for _, other := range hubs {
		if other.struck {
			return nil // of three hubs a majority stays
		}
	}
	return h
}

// pickWorker takes one that is whole, and leaves one that is: somebody must go on.
func pickWorker(workers []*worker, pick uint64) *worker {
	var whole []*worker
	for _, w := range workers {
		if !w.struck && w.running() {
			whole = append(whole, w)
		}
	}
	if len(whole) < 2 {
		return nil
	}
	return whole[pick%uint64(len(whole))]
}

// strikeWorker writes the blow down: what was in the worker's hands may be asked again.
func (f *fleet) strikeWorker(w *worker, s step) (end func()) {
	w.struck = true
	f.strikes[s.harm]++
	b := len(f.audit.blows)
	f.audit.blows = append(f.audit.blows, f.blowTo(w, s))
	heal := f.harmWorker(w, s)
	return func() {
		heal()
		w.struck = false
		f.audit.blows[b].until = time.Now()
	}
}

// blowTo is a blow as it falls. Where answers may be saved late, it is looked which are.
func (f *fleet) blowTo(w *worker, s step) blow {
	b := blow{kind: string(s.harm), who: w.name, at: time.Now(), hands: f.judge.handsOf(w.name), may: f.plan.inFlight}
	if !f.savesLate {
		return b
	}
	b.saved = f.saved()
	for _, c := range f.judge.book() {
		if c.who == w.name && c.status == http.StatusOK && !b.saved[c.prompt] {
			b.may++
		}
	}
	return b
}

func (f *fleet) harmWorker(w *worker, s step) (end func()) {
	switch s.harm {
	case freezing:
		w.freeze()
		return w.thaw
	case draining:
		w.signal(syscall.SIGTERM)
		return func() { w.kill(); w.start() }
	case cutting:
		return f.cut(w, s.how)
	case slowing:
		w.link.slow(lease, up, down)
		return w.link.heal
	default:
		w.kill()
		return w.start
	}
}

// cuts are the ways in which a link can be cut.
var cuts = []func(*link){
	func(l *link) { l.swallow(up, down) },
	func(l *link) { l.swallow(up) },
	func(l *link) { l.swallow(down) },
	func(l *link) { l.hold(up, down) },
	func(l *link) { l.hold(up) },
	func(l *link) { l.hold(down) },
}

// cut spoils a worker's link: from then on its permits are what it has in hand.
func (f *fleet) cut(w *worker, how uint64) (end func()) {
	cuts[how%uint64(len(cuts))](w.link)
	lost := f.lose(w.name)
	return func() { f.find(lost); w.link.heal() }
}

// lose notes that somebody cannot reach the keeper from now on.
func (f *fleet) lose(who string) int {
	f.audit.absences = append(f.audit.absences, absence{who: who, from: time.Now(), until: time.Now().Add(time.Hour)})
	return len(f.audit.absences) - 1
}

// find ends an absence.
func (f *fleet) find(lost int) { f.audit.absences[lost].until = time.Now() }

// strikeHub takes a hub away. Where it is the only one, nobody reaches the keeper.
func (f *fleet) strikeHub(h *hub, s step) (end func()) {
	h.struck = true
	f.strikes[s.harm]++
	heal := f.harmHub(h, s)
	var lost []int
	if len(f.hubs) == 1 {
		for _, w := range f.workers {
			lost = append(lost, f.lose(w.name))
		}
	}
	return func() {
		for _, l := range lost {
			f.find(l)
		}
		heal()
		h.struck = false
	}
}

func (f *fleet) harmHub(h *hub, s step) (end func()) {
	if s.harm == freezing {
		h.freeze()
		return h.thaw
	}
	h.kill()
	damage(f, filepath.Join(h.dir, hubStore), s)
	return h.start
}

// hubStore is the folder in which a hub keeps JetStream's data. The hub's token and certificates
// lie next to it. They are settings, and nobody could join without them.
const hubStore = "jetstream"

// damage damages the folder of a dead hub.
func damage(f *fleet, dir string, s step) {
	chance := rand.New(rand.NewPCG(s.how, 0))
	var err error
	switch s.harm {
	case wiping:
		err = os.RemoveAll(dir)
	case tearing:
		err = eachFile(dir, func(path string, size int64) error {
			if chance.IntN(2) == 0 {
				return nil
			}
			return os.Truncate(path, chance.Int64N(size))
		})
	case flipping:
		err = eachFile(dir, func(path string, size int64) error { return flip(chance, path, size) })
	default:
	}
	if err != nil {
		f.t.Errorf("%s %s: %v", s.harm, dir, err)
	}
}

// eachFile visits the files that hold anything.
func eachFile(dir string, visit func(path string, size int64) error) error {
	return filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return err
		}
		return visit(path, info.Size())
	})
}

// flipped bounds the bits of a file that are turned.
const flipped = 8

func flip(chance *rand.Rand, path string, size int64) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	for range 1 + chance.IntN(flipped) {
		at, b := chance.Int64N(size), []byte{0}
		if _, err := file.ReadAt(b, at); err != nil {
			return err
		}
		b[0] ^= 1 << chance.IntN(8)
		if _, err := file.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

// keeper is the worker that kept the limits last, by what keepers leave in the store: nil if it
// is not there any more, and no other has come yet. Its name there has the process's number in it.
func (f *fleet) keeper() *worker {
	epochs, err := filepath.Glob(filepath.Join(f.home, "keeper", "epoch-*")) // in order: the numbers have leading zeros
	if err != nil || len(epochs) == 0 {
		return nil
	}
	name, err := os.ReadFile(epochs[len(epochs)-1])
	if err != nil {
		return nil
	}
	for _, w := range f.workers {
		if w.running() && strings.Contains(string(name), fmt.Sprintf("-%d-", w.cmd.Process.Pid)) {
			return w
		}
	}
	return nil
}
