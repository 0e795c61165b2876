package claim

import (
	"errors"
	"slices"
	"time"
)

// store holds the parts and journals, which nobody forgets.
type store struct {
	w        *world
	parts    map[Chunk]*part
	journals map[Chunk]map[Name]*journal
}

type line struct {
	item   int
	call   *call
	failed bool
}

type part struct{ lines []line }

type journal struct{ lines []line }

var errStore = errors.New("the store is away")

// do lets a request happen between now and its answer. It happens whatever becomes of who asked.
func (s *store) do(l *life, effect func() error, answer func(error)) {
	w := s.w
	took := time.Millisecond + w.upTo(60*time.Millisecond)
	if w.has(slowStore) && w.chance(12) {
		took += w.upTo(5 * time.Second)
	}
	at := w.upTo(took)
	undone, unheard := w.has(storeFaults) && w.chance(100), w.has(storeFaults) && w.chance(100)
	w.in(at, func() {
		err := errStore
		if !undone {
			err = effect()
		}
		if unheard {
			err = errStore
		}
		l.at(took-at, func() { answer(err) })
	})
}

// names lists the journals of a chunk.
func (s *store) names(c Chunk) (names []Name) {
	for n := range s.journals[c] {
		names = append(names, n)
	}
	slices.SortFunc(names, Name.Compare)
	s.w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func (s *store) createJournal(c Chunk, n Name) (taken bool) {
	if s.journals[c] == nil {
		s.journals[c] = make(map[Name]*journal)
	}
	if s.journals[c][n] != nil {
		return true
	}
	s.journals[c][n] = &journal{}
	return false
}

// appendTo saves lines. Of a journal that was deleted nobody sees them: a file has no name any more,
// and pieces without the first are no journal.
func (s *store) appendTo(c Chunk, n Name, lines []line) {
	for _, l := range lines {
		l.call.saved, l.call.savedAt = true, s.w.now
	}
	if j := s.journals[c][n]; j != nil {
		j.lines = append(j.lines, lines...)
	}
}

// createPart makes a part, unless there is one.
func (s *store) createPart(c Chunk, lines []line) Outcome {
	if s.parts[c] != nil {
		if s.w.mutant == overwrites {
			s.parts[c] = &part{lines}
			s.w.fail("the part of %v was written over", c)
		}
		return Taken
	}
	s.w.log("part of %v: %d lines", c, len(lines))
	s.parts[c] = &part{lines}
	return Made
}

// joined are the lines of a part: of each item the first there is, in order; complete tells whether
// each item has one.
func (s *store) join(c Chunk, found [][]line) (lines []line, complete bool) {
	complete = true
	for _, item := range s.w.items(c) {
		i := slices.IndexFunc(found, func(ls []line) bool { return slices.ContainsFunc(ls, func(l line) bool { return l.item == item }) })
		if i < 0 {
			complete = false
			continue
		}
		at := slices.IndexFunc(found[i], func(l line) bool { return l.item == item })
		lines = append(lines, found[i][at])
	}
	return lines, complete
}
