package parts

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/headrace/headrace/batch/journal"
)

// JoinBytes bounds the bytes of a chunk's lines that are held in memory for sorting. If the lines are
// longer in all, the journals are read several times.
const JoinBytes = 32 << 20

// Joined holds the joined journals of a chunk: one line for each line of the input that has any.
type Joined struct {
	Sums
	// Damaged counts the lines of the journals that cannot be read as they were written, as after a
	// loss of power. Their items have not ended, unless another line says so.
	Damaged int

	bytes    int64
	hold     int64
	journals []iter.Seq2[[]byte, error]
	places   []place
	inMemory bool // the text of each is at hand
}

// place says where the line of an item is.
type place struct {
	line    int // of the input
	journal int
	size    int64
	text    []byte // nil where it is not held
}

// ErrTwoKeys says that two lines of one item belong to two questions.
var ErrTwoKeys = errors.New("the journals are of two inputs")

// Join reads journals, the one that counts most first: each item gets its first line. The journals' lines
// have no line feeds, and are valid until the next. Join holds up to hold bytes of them; 0 means Held.
// Each journal may be read several times, until Lines has been read for the last time.
func Join(hold int64, journals ...iter.Seq2[[]byte, error]) (*Joined, error) {
	j := &Joined{hold: cmp.Or(hold, JoinBytes), journals: journals, inMemory: true}
	seen := map[int]string{} // the keys of lines
	for i, lines := range journals {
		if err := j.read(i, lines, seen); err != nil {
			return nil, fmt.Errorf("parts: join: %w", err)
		}
	}
	slices.SortFunc(j.places, func(a, b place) int { return cmp.Compare(a.line, b.line) })
	return j, nil
}

// read adds the lines of journal i, except those of items that have a line already. seen holds the
// keys of these items, by the line of the input. A line that does not parse is counted, and left out.
func (j *Joined) read(i int, lines iter.Seq2[[]byte, error], seen map[int]string) error {
	var parse journal.Parser
	for text, err := range lines {
		if err != nil {
			return err
		}
		line := append(text[:len(text):len(text)], '\n') // a copy: keep may hold it
		e, err := parse.Parse(line)
		if err != nil {
			j.Damaged++
			continue
		}
		switch key, again := seen[e.Line]; {
		case !again:
			seen[e.Line] = e.Key
			j.add(&e)
			j.keep(place{line: e.Line, journal: i, size: int64(len(line)), text: line})
		case key != e.Key:
			return fmt.Errorf("line %d: %w", e.Line, ErrTwoKeys)
		}
	}
	return nil
}

// keep notes the place of a line. It holds the text of all lines, or of none once they have more bytes than hold.
func (j *Joined) keep(p place) {
	if j.bytes += p.size; j.inMemory && j.bytes > j.hold {
		j.inMemory = false
		for i := range j.places {
			j.places[i].text = nil
		}
	}
	if !j.inMemory {
		p.text = nil
	}
	j.places = append(j.places, p)
}

// All yields the lines in the order of the input, line feeds included; each is valid until the
// next. The first error ends them.
func (j *Joined) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for from := 0; from < len(j.places); {
			window := j.places[from:]
			if !j.inMemory {
				window = slices.Clone(j.window(from))
				if err := j.load(window); err != nil {
					yield(nil, fmt.Errorf("parts: join: %w", err))
					return
				}
			}
			for _, p := range window {
				if !yield(p.text, nil) {
					return
				}
			}
			from += len(window)
		}
	}
}

// window returns as many places from one on as can be held, and at least that one.
func (j *Joined) window(from int) []place {
	size, to := j.places[from].size, from+1
	for ; to < len(j.places) && size+j.places[to].size <= j.hold; to++ {
		size += j.places[to].size
	}
	return j.places[from:to]
}

// load reads the text of all places of a window.
func (j *Joined) load(window []place) error {
	wanted := map[[2]int]*place{}
	for i := range window {
		wanted[[2]int{window[i].journal, window[i].line}] = &window[i]
	}
	var parse journal.Parser
	for i, lines := range j.journals {
		for text, err := range lines {
			if err != nil {
				return err
			}
			fed := append(text[:len(text):len(text)], '\n')
			e, err := parse.Parse(fed)
			at := [2]int{i, e.Line}
			if p := wanted[at]; err == nil && p != nil {
				p.text = fed
				delete(wanted, at)
			}
			if len(wanted) == 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("%d lines are in the journals no more", len(wanted))
}
