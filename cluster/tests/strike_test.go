package tests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

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
