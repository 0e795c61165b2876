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
		o.keys = append(o.keys, orderKey(sum))
	}
}

// orderKey returns 64 bits of a key. If two items share them, one may stand where the other should; neither is
// lost.
func orderKey(sum keys.Sum) uint64 { return binary.BigEndian.Uint64(sum[:8]) }

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

// arrange is Arrange on the disk d, which tests replace. It sorts only after a check, which
// takes no memory, has found a line out of order.
func arrange(d disk.Disk, path string, order *Order, until func() error) (moved bool, err error) {
	a := arranger{journal: Journal{path: path, noKeys: true}, order: order.keys, until: until}
	if _, err := a.journal.load(nil); err != nil {
		return false, err
	}
	if err = a.checkOrder(); errors.Is(err, errOutOfOrder) {
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

const rankBehind = math.MaxUint32

func (p *place) end() int64 { return p.offset + int64(p.size) }

var errOutOfOrder = errors.New("out of order")

// checkOrder returns errOutOfOrder unless the lines are in order. It walks along the file and the order side by
// side, and takes no memory. A line that is missing from the order counts as out of order.
func (a *arranger) checkOrder() error {
	if a.journal.Torn > 0 || a.journal.NoFeed {
		return ErrChanged
	}
	position := 0
	return a.journal.each(func(_ int, sum keys.Sum, _ []byte, _ *Parser) error {
		key := orderKey(sum)
		for position < len(a.order) && a.order[position] != key {
			position++
		}
		if position == len(a.order) {
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
	err = a.journal.each(func(_ int, sum keys.Sum, text []byte, _ *Parser) error {
		a.places = append(a.places, place{key: orderKey(sum), offset: offset, size: uint32(len(text)), rank: rankBehind})
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
		for ; at < len(a.places) && a.places[at].key == key && a.places[at].rank == rankBehind; at++ {
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

// DropSuperseded rewrites an errors file without lines that a later try has made obsolete.
// These are lines of items that have a result by now, and lines that a later line of the
// same item follows. So an item that was tried again has one line in both files together.
// Lines of other outputs stay. DropSuperseded returns how many lines went; if none, it
// writes nothing.
//
// j is the errors file as it was before the run. The run has since read the inputs of these
// names to their end, and written new lines for input lines that still cannot be asked, or
// named them to [Journal.Still]. Other lines of j about input lines that could not be asked
// go: each was corrected or removed, or has a new line.
//
// The new file takes the old one's place at once or not at all: a loss of power leaves one
// of the two, whole. A link stays a link. Before the call, an item that was tried again may
// have a line in both files, and then the one in the output counts. No saver may be open on
// the file, and the caller holds the lock.
func (j *Journal) DropSuperseded(results *KeySet, inputs ...string) (dropped int, err error) {
	return j.dropSuperseded(disk.Real(), results, inputs...)
}

// Still says that a run has met the item with that key in its input, and lets its line stand.
func (j *Journal) Still(key string) {
	if sum, ok := keys.Parse([]byte(key)); ok {
		j.stillMet.add(sum)
	}
}

// dropSuperseded is DropSuperseded on the disk d, which tests replace. It goes over the file
// once to find each item's last line, and once to count. Only if some line goes does it write
// the others. So it holds no line in memory.
func (j *Journal) dropSuperseded(d disk.Disk, results *KeySet, inputs ...string) (dropped int, err error) {
	current, err := (&Journal{path: j.path, isErrorsFile: true, output: j.output, inputs: inputs}).load(nil)
	if err != nil {
		return 0, err
	}
	last, err := current.latest()
	if err != nil {
		return 0, err
	}
	keep := func(line int, sum keys.Sum, p *Parser) bool {
		latest, several := last[sum]
		return !current.isOurs(p) ||
			!results.sums.Has(sum) && (!several || latest == line) && !(line <= j.Lines && current.unasked.sums.Has(sum) && !j.stillMet.sums.Has(sum))
	}
	err = current.each(func(line int, sum keys.Sum, _ []byte, p *Parser) error {
		if !keep(line, sum, p) {
			dropped++
		}
		return nil
	})
	if err != nil || dropped == 0 {
		return 0, err
	}
	err = replace(d, current.path, func(out *bufio.Writer) error {
		return current.each(func(line int, sum keys.Sum, text []byte, p *Parser) error {
			if !keep(line, sum, p) {
				return nil
			}
			_, err := out.Write(text)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("journal: rewrite %s: %w", current.path, disk.Bare(err))
	}
	return dropped, nil
}

// latest returns the number of the last line of each item that has several.
func (j *Journal) latest() (map[keys.Sum]int, error) {
	if j.Repeated == 0 {
		return nil, nil //nolint:nilnil // no item has
	}
	last := make(map[keys.Sum]int)
	var seenKeys KeySet
	return last, j.each(func(line int, sum keys.Sum, _ []byte, p *Parser) error {
		if j.isOurs(p) && !seenKeys.add(sum) {
			last[sum] = line
		}
		return nil
	})
}

// Costs holds what items of an errors file have cost. The zero value is empty.
type Costs struct{ byKey map[keys.Sum]*Earlier }

// Costs reads what the items have cost. Those that cost nothing take no room.
func (j *Journal) Costs() (c Costs, err error) {
	c.byKey = make(map[keys.Sum]*Earlier)
	err = j.each(func(_ int, sum keys.Sum, _ []byte, p *Parser) error {
		if !j.isOurs(p) {
			return nil
		}
		e, err := p.entry(sum)
		if cost := e.totalCost(); cost != (Earlier{}) {
			c.byKey[sum] = &cost // a later line has the cost of those before it
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("journal: read %s: %w", j.path, err)
	}
	return c, nil
}

// Of returns what the item with that key has cost; nil: nothing.
func (c Costs) Of(key string) *Earlier {
	if len(c.byKey) == 0 {
		return nil
	}
	sum, _ := keys.Parse([]byte(key))
	return c.byKey[sum]
}

// each goes over the whole lines of a journal again.
func (j *Journal) each(visit func(line int, sum keys.Sum, text []byte, p *Parser) error) error {
	if !j.exists {
		return nil
	}
	file, err := os.Open(j.path)
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	reader := lines.New(io.LimitReader(file, j.Size), MaxJournalLine)
	var parse Parser
	for n := 1; n <= j.Lines; n++ {
		text, _, err := reader.Cut()
		if err != nil && j.NoFeed && n == j.Lines && lines.AtEnd(err) {
			text, err = withLineFeed(text), nil
		}
		if err != nil {
			return ErrChanged
		}
		sum, err := parse.key(text, j.isErrorsFile)
		if err != nil {
			return ErrChanged
		}
		if err := visit(n, sum, text, &parse); err != nil {
			return err
		}
	}
	return nil
}
