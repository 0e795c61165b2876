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

// ErrRuined says that an output of headrace has not a single good line left.
var ErrRuined = errors.New("it has no good line left: restore it from a copy, or start over with --fresh, which keeps it")

// maxDropped bounds how many losses a Repaired names. A file has a handful, and one that is
// ruined throughout must not fill memory.
const maxDropped = 1000

// Repaired reports the repair of a damaged file.
type Repaired struct {
	Kept    int       // good lines
	Dropped []Dropped // stretches without a good line, in the order of the file; the first thousand
	More    int       // how many more there are
	As      string    // the name under which the original file is kept; "" if nothing was wrong with it
}

// Dropped is a stretch of a damaged file in which there is no good line. Its items have not
// ended: a later run asks them again.
type Dropped struct {
	Line  int    // its number in the original file, from 1
	Bytes int    // its length; beyond MaxJournalLine no bytes are counted
	ID    string // the custom id of the item that begins it; "" if it cannot be read
}

// Repair keeps every good line of a damaged output, each as it was, and drops the rest. The
// original file stays under the name in As; nothing is ever overwritten. Repair leaves a
// file alone that ReadJournal accepts. It refuses two kinds of file, which stay as they
// are. One has not a single good line: ErrRuined, or ErrForeign if nothing says that it is
// ours. The other has good lines of failed items: ErrOtherKind. The caller holds the lock.
func Repair(path string) (*Repaired, error) { return repair(disk.Real(), path, false) }

// RepairErrors is Repair for a file of failed items.
func RepairErrors(path string) (*Repaired, error) { return repair(disk.Real(), path, true) }

// repair repairs the output at path, or the errors file there if failed. It works on the disk d,
// which tests replace. If the file is good, nothing is written and As is empty.
func repair(d disk.Disk, path string, isErrorsFile bool) (*Repaired, error) {
	j, err := readJournal(path, isErrorsFile, nil)
	switch {
	case err == nil:
		return &Repaired{Kept: j.Lines}, nil
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign):
		return nil, err
	}
	s := &salvage{failed: isErrorsFile, disk: d, noGoodLine: ErrForeign}
	if errors.Is(err, ErrDamaged) {
		s.noGoodLine = ErrRuined
	}
	target := linkedTo(path) // the kept file lies next to the file, not next to a link to it
	if err := replace(d, target, func(out *bufio.Writer) error { return s.copyGoodLines(target, out) }); err != nil {
		return nil, fmt.Errorf("journal: repair %s: %w", path, disk.Bare(err))
	}
	return &s.Repaired, nil
}

// salvage copies the good parts of a file.
type salvage struct {
	Repaired
	failed     bool
	noGoodLine error // the error for a file without a good line
	disk       disk.Disk
	parse      Parser
	out        *bufio.Writer
}

// copyGoodLines writes the good lines of the file at path to out, and then gives the file a second name. That name
// lasts before the new file takes the first one. So the original is there under one name or the other, whenever the
// power goes.
func (s *salvage) copyGoodLines(path string, out *bufio.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	s.out = out
	reader := lines.New(file, MaxJournalLine)
	for line := 1; err == nil; line++ {
		var text []byte
		var whole bool
		if text, whole, err = reader.Cut(); err != nil && !lines.AtEnd(err) {
			return err
		}
		if fault := s.salvageLine(line, text, whole); fault != nil {
			return fault
		}
	}
	if s.Kept == 0 {
		return s.noGoodLine
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

// salvageLine keeps a line, or the good parts of it. Several lines stand in one where a line feed was lost, or
// where zeros cover the end of one line and the beginning of another.
func (s *salvage) salvageLine(n int, text []byte, whole bool) error {
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
		if err := s.keep(n, withLineFeed(text[:size])); err != nil {
			return err
		}
		text = bytes.TrimPrefix(text[size:], []byte{'\n'})
	}
	return nil
}

// keep writes a line whose sum holds. It drops a line that is not ours although its sum
// holds.
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

// drop records a stretch without a good line; beyond maxDropped it only counts.
func (s *salvage) drop(n int, text []byte) {
	if len(s.Dropped) == maxDropped {
		s.More++
		return
	}
	s.Dropped = append(s.Dropped, Dropped{Line: n, Bytes: len(text), ID: customID(text)})
}

// nextOpening returns the first place after the first byte at which a line of ours may
// begin; else the length of text. The opening cannot occur within a string of a line, as
// quotes are escaped there.
func nextOpening(text []byte) int {
	const fixed = `{"id":"hr-`
	for offset := 1; offset < len(text); offset++ {
		next := bytes.Index(text[offset:], []byte(fixed))
		if next < 0 {
			break
		}
		if offset += next; len(text)-offset >= len(opening) && mayBeOurs(text[offset:]) {
			return offset
		}
	}
	return len(text)
}

// goodLine returns the length of the line that begins text, without its line feed; 0 if no
// sum in it holds.
func goodLine(text []byte) int {
	for offset := 0; ; offset++ {
		next := bytes.Index(text[offset:], []byte(sumBegins))
		if next < 0 {
			return 0
		}
		offset += next
		if end := offset + sumLength - 1; end <= len(text) && sumHolds(withLineFeed(text[:end])) {
			return end
		}
	}
}

// customID reads the custom id from the beginning of a line; "" if that is damaged too.
func customID(text []byte) string {
	if len(text) < len(opening) || !mayBeOurs(text) {
		return ""
	}
	quoted := text[len(opening)-1:]
	if quoted = quoted[:rawjson.SkipString(quoted, 0)]; !json.Valid(quoted) {
		return ""
	}
	return string(rawjson.Unquote(quoted))
}
