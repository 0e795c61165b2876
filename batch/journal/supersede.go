package journal

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/disk"
)

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
