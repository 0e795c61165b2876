package journal

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/disk"
)

// Order is the order in which items should stand in an output. The zero value is empty. An
// Order holds 8 bytes an item, and the room to grow in.
type Order struct{ keys []uint64 }

// Add puts the item with this key behind the others. It ignores a key that is not valid.
func (o *Order) Add(key string) {
	if sum, ok := keys.Parse([]byte(key)); ok {
		o.keys = append(o.keys, short(sum))
	}
}

// short returns 64 bits of a key. If two items share them, one may stand where the other
// should; neither is lost.
func short(sum keys.Sum) uint64 { return binary.BigEndian.Uint64(sum[:8]) }

// ArrangeBytesPerLine is the memory that Arrange takes for each line, besides the order:
// where the line is, and where it should be. If all lines stand in order, it takes none.
const ArrangeBytesPerLine = 24

// Arrange puts the lines of the output at path into an order, and reports whether it moved
// any. If the lines are in order already, it writes nothing. Lines of items that are
// missing from the order go behind the others and keep their own order.
//
// The new file takes the old one's place at once or not at all. Until then it needs as much
// room on the disk again. Arrange calls until now and then: an error of until ends the work
// and is returned; the file is then as it was. No saver may be open on the file, and the
// caller holds the lock.
func Arrange(path string, order *Order, until func() error) (moved bool, err error) {
	return arrange(disk.Real(), path, order, until)
}

func arrange(d disk.Disk, path string, order *Order, until func() error) (moved bool, err error) {
	a := arranger{journal: Journal{path: path, noKeys: true}, order: order.keys, until: until}
	if _, err := a.journal.from(nil); err != nil {
		return false, err
	}
	if err = a.check(); errors.Is(err, errOutOfOrder) {
		moved, err = a.sort()
	}
	if err == nil && moved {
		err = replace(d, path, a.write)
	}
	if err != nil {
		return false, fmt.Errorf("journal: bring %s into order: %w", path, disk.Bare(err))
	}
	return moved, nil
}

// arranger brings the lines of one file into order.
type arranger struct {
	journal Journal
	order   []uint64
	until   func() error
	places  []place
}

// place is one line of the file.
type place struct {
	key        uint64
	offset     int64
	size, rank uint32 // rank is the line's place in the order, behind if the order does not have it
}

const behind = math.MaxUint32

func (p *place) end() int64 { return p.offset + int64(p.size) }

var errOutOfOrder = errors.New("out of order")

// check walks along the file and the order side by side. If the lines are in order, it
// takes no memory. It treats a line that is missing from the order as out of order.
func (a *arranger) check() error {
	if a.journal.Torn > 0 || a.journal.NoFeed {
		return ErrChanged
	}
	at := 0
	return a.journal.each(func(_ int, sum keys.Sum, _ []byte, _ bool) error {
		key := short(sum)
		for at < len(a.order) && a.order[at] != key {
			at++
		}
		if at == len(a.order) {
			return errOutOfOrder
		}
		return a.until()
	})
}

// sort lists the lines in the order in which they should stand, and reports whether any
// moves.
func (a *arranger) sort() (moved bool, err error) {
	a.places = make([]place, 0, a.journal.Lines)
	offset := int64(0)
	err = a.journal.each(func(_ int, sum keys.Sum, text []byte, _ bool) error {
		a.places = append(a.places, place{key: short(sum), offset: offset, size: uint32(len(text)), rank: behind})
		offset += int64(len(text))
		return a.until()
	})
	if err != nil {
		return false, err
	}
	a.rank()
	byPlace := func(x, y place) int { return cmp.Compare(x.offset, y.offset) }
	slices.SortFunc(a.places, func(x, y place) int { return cmp.Or(cmp.Compare(x.rank, y.rank), byPlace(x, y)) })
	return !slices.IsSortedFunc(a.places, byPlace), nil
}

// rank gives each line its place in the order.
func (a *arranger) rank() {
	slices.SortFunc(a.places, func(x, y place) int { return cmp.Compare(x.key, y.key) })
	for rank, key := range a.order {
		at, _ := slices.BinarySearchFunc(a.places, key, func(p place, key uint64) int { return cmp.Compare(p.key, key) })
		for ; at < len(a.places) && a.places[at].key == key && a.places[at].rank == behind; at++ {
			a.places[at].rank = uint32(rank)
		}
	}
}

// write copies the lines in their new order, and neighbours in one go.
func (a *arranger) write(out *bufio.Writer) error {
	file, err := os.Open(a.journal.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for i := 0; i < len(a.places); {
		from, to := a.places[i].offset, a.places[i].end()
		for i++; i < len(a.places) && a.places[i].offset == to; i++ {
			to = a.places[i].end()
		}
		if err := a.until(); err != nil {
			return err
		}
		n, err := io.Copy(out, io.NewSectionReader(file, from, to-from))
		if err == nil && n < to-from {
			err = ErrChanged
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DropSuperseded rewrites the errors file at path without lines that a later try has made
// obsolete. These are lines of items that have a result by now, and lines that a later
// line of the same item follows. So an item that was tried again has one line in both
// files together. DropSuperseded returns how many lines went; if none, it writes nothing.
//
// The new file takes the old one's place at once or not at all: a loss of power leaves one
// of the two, whole. A link stays a link. Before the call, an item that was tried again may
// have a line in both files, and then the one in the output counts. No saver may be open on
// the file, and the caller holds the lock.
func DropSuperseded(path string, results *KeySet) (dropped int, err error) {
	return dropSuperseded(disk.Real(), "", path, results, 0)
}

// DropSuperseded is the function of that name for the output of j: lines of other outputs
// stay. j is the errors file as it was before the run. The run has since read the inputs of
// these names to their end, and written new lines for input lines that still cannot be
// asked. Lines of j about input lines that could not be asked go: each was corrected, or
// has a new line.
func (j *Journal) DropSuperseded(results *KeySet, inputs ...string) (dropped int, err error) {
	return dropSuperseded(disk.Real(), j.output, j.path, results, j.Lines, inputs...)
}

// dropSuperseded also drops those of the first lines of the file that are about lines of
// these inputs that could not be asked.
func dropSuperseded(d disk.Disk, output, path string, results *KeySet, first int, inputs ...string) (dropped int, err error) {
	journal, err := (&Journal{path: path, failed: true, output: output, inputs: inputs}).from(nil)
	if err != nil {
		return 0, err
	}
	last := newLastLines(journal)
	err = journal.each(func(line int, sum keys.Sum, _ []byte, ours bool) error {
		if ours {
			last.see(line, sum)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	keep := func(line int, sum keys.Sum, ours bool) bool {
		return !ours || !results.sums.Has(sum) && last.is(line, sum) && !(line <= first && journal.unasked.sums.Has(sum))
	}
	if dropped, err = journal.count(keep); err != nil || dropped == 0 {
		return 0, err
	}
	if err := journal.rewrite(d, keep); err != nil {
		return 0, fmt.Errorf("journal: rewrite %s: %w", path, disk.Bare(err))
	}
	return dropped, nil
}

// lastLines knows which line of an item is its last. If the journal has repeated lines,
// it holds a set of all keys, and the last line of each item that has several.
type lastLines struct {
	several map[keys.Sum]int
	seen    KeySet
}

func newLastLines(j *Journal) *lastLines {
	if j.Repeated == 0 {
		return &lastLines{}
	}
	return &lastLines{several: make(map[keys.Sum]int)}
}

func (l *lastLines) see(line int, sum keys.Sum) {
	if l.several != nil && !l.seen.add(sum) {
		l.several[sum] = line
	}
}

func (l *lastLines) is(line int, sum keys.Sum) bool {
	last, several := l.several[sum]
	return !several || last == line
}

// each goes over the whole lines of a journal again.
func (j *Journal) each(visit func(line int, sum keys.Sum, text []byte, ours bool) error) error {
	if !j.there {
		return nil
	}
	file, err := os.Open(j.path)
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	r := lines.New(io.LimitReader(file, j.Size), MaxJournalLine)
	var parse journalParser
	for n := 1; n <= j.Lines; n++ {
		text, _, err := r.Cut()
		if err != nil && j.NoFeed && n == j.Lines && lines.AtEnd(err) {
			text, err = fed(text), nil
		}
		if err != nil {
			return ErrChanged
		}
		sum, err := parse.key(text, j.failed)
		if err != nil {
			return ErrChanged
		}
		if err := visit(n, sum, text, j.isOurs(&parse)); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) count(keep func(line int, sum keys.Sum, ours bool) bool) (dropped int, err error) {
	err = j.each(func(line int, sum keys.Sum, _ []byte, ours bool) error {
		if !keep(line, sum, ours) {
			dropped++
		}
		return nil
	})
	return dropped, err
}

// rewrite writes the file anew, without the lines that keep refuses.
func (j *Journal) rewrite(d disk.Disk, keep func(line int, sum keys.Sum, ours bool) bool) error {
	return replace(d, j.path, func(out *bufio.Writer) error {
		return j.each(func(line int, sum keys.Sum, text []byte, ours bool) error {
			if !keep(line, sum, ours) {
				return nil
			}
			_, err := out.Write(text)
			return err
		})
	})
}
