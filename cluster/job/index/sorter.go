package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/headrace/headrace/cluster/store"
)

// marksAtOnce is how many marks are sorted in memory: 4 MB. Where a question is asked again and
// again, each line has one.
const marksAtOnce = 1 << 17

// sorter puts marks into the order of their lines. What does not fit into memory stands in the
// store meanwhile.
type sorter struct {
	ctx   context.Context
	store store.Store
	name  string // what the names of its objects begin with
	most  int    // that are held
	room  []mark
	runs  []string
	sizes []int64
}

// markSize is what a mark takes in the store: line, line it names, how manieth, flags.
const markSize = 8 + 8 + 4 + 1

func (s *sorter) add(m mark) error {
	if s.room = append(s.room, m); len(s.room) < s.most {
		return nil
	}
	return s.flush()
}

func (s *sorter) sort() {
	slices.SortFunc(s.room, func(a, b mark) int { return cmp.Compare(a.line, b.line) })
}

// flush writes what is in hand as one more run.
func (s *sorter) flush() error {
	s.sort()
	text := make([]byte, 0, len(s.room)*markSize)
	for _, m := range s.room {
		text = m.append(text)
	}
	name := fmt.Sprintf("%s-%d", s.name, len(s.runs))
	s.runs, s.sizes, s.room = append(s.runs, name), append(s.sizes, int64(len(text))), s.room[:0]
	return store.CreateBytes(s.ctx, s.store, name, text)
}

// all yields the marks by line, those of one line as one.
func (s *sorter) all() iter.Seq2[mark, error] {
	s.sort()
	runs := []sorted[mark]{&marksInHand{s.room}}
	for i, name := range s.runs {
		runs = append(runs, &markRun{window{ctx: s.ctx, store: s.store, name: name, end: s.sizes[i], size: pieceFor(len(s.runs))}})
	}
	return joined(merge(runs, func(a, b *mark) bool { return a.line < b.line }))
}

// joined makes one of the marks of each line.
func joined(all iter.Seq2[mark, error]) iter.Seq2[mark, error] {
	return func(yield func(mark, error) bool) {
		var open mark
		for m, err := range all {
			switch {
			case err != nil:
				yield(mark{}, err)
				return
			case m.line == open.line:
				open.join(m)
				continue
			case open.line > 0 && !yield(open, nil):
				return
			}
			open = m
		}
		if open.line > 0 {
			yield(open, nil)
		}
	}
}

// remove takes away what was only there to be sorted. What cannot be is left: it does no harm.
func (s *sorter) remove() {
	for _, name := range s.runs {
		_ = s.store.Delete(s.ctx, name)
	}
}

func (m *mark) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.line))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.by))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.nth))
	flags := byte(0)
	if m.taken {
		flags = 1
	}
	if m.byBare {
		flags |= 2
	}
	return append(dst, flags)
}

func parseMark(b []byte) mark {
	return mark{
		line: int(binary.BigEndian.Uint64(b)), by: int(binary.BigEndian.Uint64(b[8:])),
		nth: int(binary.BigEndian.Uint32(b[16:])), taken: b[20]&1 != 0, byBare: b[20]&2 != 0,
	}
}

type marksInHand struct{ rest []mark }

func (r *marksInHand) next() (m mark, there bool, err error) {
	if len(r.rest) == 0 {
		return m, false, nil
	}
	m, r.rest = r.rest[0], r.rest[1:]
	return m, true, nil
}

type markRun struct{ window }

func (r *markRun) next() (mark, bool, error) {
	b, err := r.window.next(markSize)
	if b == nil || err != nil {
		return mark{}, false, err
	}
	return parseMark(b), true, nil
}
