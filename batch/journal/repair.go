package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider/rawjson"
)

// ErrRuined says that an output of headrace's has not a single good line left.
var ErrRuined = errors.New("it has no good line left: restore it from a copy, or start over with --fresh, which keeps it")

// maxDropped is how many losses a Repaired names: a file has a handful, and one that is
// ruined throughout must not fill memory.
const maxDropped = 1000

// Repaired says what became of a damaged file.
type Repaired struct {
	Kept    int       // good lines
	Dropped []Dropped // what is none, in the order of the file; the first thousand
	More    int       // how many there are beyond those
	As      string    // where the file is kept as it was; "" if nothing was wrong with it
}

// Dropped is a stretch of a damaged file in which there is no good line. The items that
// it was about have not ended: a later run asks them again.
type Dropped struct {
	Line  int    // its number in the file as it was, from 1
	Bytes int    // how long it is; of what is over MaxJournalLine, only that much is counted
	ID    string // the custom id of the item that begins it; "" if that cannot be read
}

// Repair keeps every good line of a damaged output, each as it was, and drops the rest.
// The file as it was stays under the name that is told in As; nothing is ever overwritten.
// A file that ReadJournal takes is left alone. One without a single good line (ErrRuined, or
// ErrForeign if nothing says that it is ours),
// or with good lines that are about failed items (ErrOtherKind), is refused and stays as
// it is. The caller holds the lock.
func Repair(path string) (*Repaired, error) { return repair(disk.Real(), path, false) }

// RepairErrors is Repair for a file of failed items.
func RepairErrors(path string) (*Repaired, error) { return repair(disk.Real(), path, true) }

func repair(d disk.Disk, path string, failed bool) (*Repaired, error) {
	j, err := readJournal(path, failed, nil)
	switch {
	case err == nil:
		return &Repaired{Kept: j.Lines}, nil
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign):
		return nil, err
	}
	s := &salvage{failed: failed, disk: d, none: ErrForeign}
	if errors.Is(err, ErrDamaged) {
		s.none = ErrRuined
	}
	target := linkedTo(path) // what is kept lies beside the file, not beside a link to it
	if err := replace(d, target, func(out *bufio.Writer) error { return s.from(target, out) }); err != nil {
		return nil, fmt.Errorf("journal: repair %s: %w", path, disk.Bare(err))
	}
	return &s.Repaired, nil
}

// salvage takes what is good from a file.
type salvage struct {
	Repaired
	failed bool
	none   error // what a file without a good line is
	disk   disk.Disk
	parse  journalParser
	out    *bufio.Writer
}

// from writes the good lines of the file at path to out, and then gives the file a second
// name, which lasts before the first is another's: so it is there under one or the other,
// whenever the power goes.
func (s *salvage) from(path string, out *bufio.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	s.out = out
	r := lines.New(file, MaxJournalLine)
	for n := 1; err == nil; n++ {
		var text []byte
		var whole bool
		if text, whole, err = r.Cut(); err != nil && !lines.AtEnd(err) {
			return err
		}
		if fault := s.line(n, text, whole); fault != nil {
			return fault
		}
	}
	if s.Kept == 0 {
		return s.none
	}
	if err := out.Flush(); err != nil {
		return err
	}
	s.As = freeName(path + BackupSuffix)
	if err := os.Link(path, s.As); err != nil {
		return err
	}
	s.disk.SyncFolder(s.As)
	return nil
}

// line keeps a line, or what is good in it: where a line feed was lost, or zeros cover
// the end of one line and the beginning of another, several stand in one.
func (s *salvage) line(n int, text []byte, whole bool) error {
	if !whole {
		s.drop(n, text)
		return nil
	}
	for len(text) > 0 {
		end := nextOpening(text)
		size := goodLine(text[:end])
		if size == 0 {
			s.drop(n, text[:end])
			text = text[end:]
			continue
		}
		if err := s.keep(n, fed(text[:size])); err != nil {
			return err
		}
		text = bytes.TrimPrefix(text[size:], []byte{'\n'})
	}
	return nil
}

// keep writes a line whose sum holds. One that is none of ours for all that is dropped.
func (s *salvage) keep(n int, text []byte) error {
	switch _, err := s.parse.key(text, s.failed); {
	case errors.Is(err, ErrOtherKind):
		return fmt.Errorf("line %d: %w", n, err)
	case err != nil:
		s.drop(n, text)
		return nil //nolint:nilerr // that it is none is the answer
	}
	s.Kept++
	_, err := s.out.Write(text)
	return err
}

func (s *salvage) drop(n int, text []byte) {
	if len(s.Dropped) == maxDropped {
		s.More++
		return
	}
	s.Dropped = append(s.Dropped, Dropped{Line: n, Bytes: len(text), ID: customID(text)})
}

// nextOpening is where, after its first byte, a text may begin a line of ours; else its
// length. In the strings of a line it cannot stand: quotes are escaped there.
func nextOpening(text []byte) int {
	const fixed = `{"id":"hr-`
	for at := 1; at < len(text); at++ {
		next := bytes.Index(text[at:], []byte(fixed))
		if next < 0 {
			break
		}
		if at += next; len(text)-at >= len(opening) && opens(text[at:]) {
			return at
		}
	}
	return len(text)
}

// goodLine is the length of the line that begins text, its line feed not counted; 0 if
// no sum in it holds.
func goodLine(text []byte) int {
	for at := 0; ; at++ {
		next := bytes.Index(text[at:], []byte(sumBegins))
		if next < 0 {
			return 0
		}
		at += next
		if end := at + sumLength - 1; end <= len(text) && sumHolds(fed(text[:end])) {
			return end
		}
	}
}

// customID reads the custom id off the beginning of a line; "" if it is damaged too.
func customID(text []byte) string {
	if len(text) < len(opening) || !opens(text) {
		return ""
	}
	quoted := text[len(opening)-1:]
	if quoted = quoted[:rawjson.SkipString(quoted, 0)]; !json.Valid(quoted) {
		return ""
	}
	return string(rawjson.Unquote(quoted))
}
