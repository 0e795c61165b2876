package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider/rawjson"
)

// Why an output of an earlier run is not written to; errors.Is finds them in the errors of
// ReadJournal and Append. The file is as it was.
var (
	ErrForeign   = errors.New("it is not a result file of headrace: move it away, or choose another file")
	ErrDamaged   = errors.New("the line is damaged: headrace repair keeps the good ones, or restore the file from a copy")
	ErrOtherKind = errors.New("output and errors file are swapped: name each with its own flag")
	ErrChanged   = errors.New("it changed while it was read: is another run using it?")
)

// MaxJournalLine is the longest line that a journal may have, in bytes. It holds an
// answer of 64 MiB that is not JSON, with each byte escaped in six, and some room.
const MaxJournalLine = 512 << 20

// ResumeBytesPerItem bounds the memory of a KeySet for each key: 8 bytes and the room to
// grow in. It is the mean of many; a fixed 400 KB come on top.
const ResumeBytesPerItem = 9.5

// keyWidth stores 78 bits of a key. To take two different requests for one would lose an
// answer: among ten million, the chance is 10⁻⁹.
const keyWidth = 8

// KeySet is a set of keys of items that earlier runs have ended. The zero value
// is empty.
type KeySet struct{ sums keys.Set }

// Has reports whether an item with this key has ended; false for an invalid key.
func (s *KeySet) Has(key string) bool {
	if s.Len() == 0 {
		return false
	}
	sum, ok := keys.Parse([]byte(key))
	if !ok {
		return false
	}
	return s.sums.Has(sum)
}

// Len returns the number of keys.
func (s *KeySet) Len() int { return s.sums.Len() }

// add adds the key, and reports whether it was not there yet.
func (s *KeySet) add(sum keys.Sum) bool {
	s.sums.Width = keyWidth
	return s.sums.Add(sum)
}

// Journal is a result file as an earlier run left it. Keys holds the items that have ended.
// A last line that was not written to its end is Torn bytes long. A missing file is an
// empty journal.
type Journal struct {
	Keys   KeySet
	IDs    *IDSet // of an output that ReadJournal has read, else nil
	Lines  int    // whole lines
	Size   int64  // their bytes in the file
	Torn   int64
	NoFeed bool // the last whole line lacks its line feed, and nothing else

	Simulated int // lines that are marked as simulated

	// Repeated counts lines whose item has a line above already; RepeatedLine is the number
	// of the first of them, 0 if there is none. An output should have none; in an errors
	// file they come from later tries of an item.
	Repeated, RepeatedLine int

	Others int // in an errors file, lines of other outputs: of all counts only Lines and Size include them

	path   string
	output string // the output whose lines count, in an errors file; "": all

	onLine       func(text []byte, sum keys.Sum, p *Parser) error // gets each line that counts as it is read; nil: nobody does
	unasked      KeySet                                           // keys of lines that could not be asked, in one of the inputs
	stillMet     KeySet                                           // keys of lines that the run has met, and that still stand
	inputs       []string                                         // their names
	noKeys       bool                                             // Keys and Repeated are not needed
	isErrorsFile bool                                             // it holds failed items
	exists       bool
}

// ReadJournal reads the output at path and changes nothing. It refuses a file that headrace
// has not written (ErrForeign), that has a damaged line (ErrDamaged) or that holds failed
// items (ErrOtherKind). It also refuses
// a directory (ErrDirectory) and a file at others, by whatever name (ErrSameFile).
func ReadJournal(path string, others ...string) (*Journal, error) {
	return (&Journal{path: path, IDs: newIDSet()}).load(others)
}

// ReadErrorsJournal is ReadJournal for a file of failed items.
func ReadErrorsJournal(path string, others ...string) (*Journal, error) {
	return readJournal(path, true, others)
}

// ReadErrorsOf is ReadErrorsJournal for the failed items of one output. The file may also
// hold those of other outputs: its lines name them.
func ReadErrorsOf(output, path string, others ...string) (*Journal, error) {
	return (&Journal{path: path, isErrorsFile: true, output: nameIn(path, output)}).load(others)
}

func readJournal(path string, isErrorsFile bool, others []string) (*Journal, error) {
	return (&Journal{path: path, isErrorsFile: isErrorsFile}).load(others)
}

// load reads the file, if there is one. It returns an error for a file that is not a journal of this kind.
func (j *Journal) load(others []string) (*Journal, error) {
	err := checkWritable(j.path, others)
	if errors.Is(err, ErrNotEmpty) {
		j.exists = true
		err = j.read()
	}
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", j.path, err)
	}
	return j, nil
}

// read opens the file and scans it.
func (j *Journal) read() error {
	file, err := os.Open(j.path)
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return j.scan(file)
}

// lookAhead is the number of lines after a bad first one that are searched for one of ours.
// Such a line makes the file ours and damaged. For a foreign file, the search costs no more
// than to read these lines.
const lookAhead = 1000

// scan reads line by line. The rest after the last line feed is either the torn line, or a
// line that lacks nothing but its line feed.
func (j *Journal) scan(in io.Reader) error {
	reader := lines.New(in, MaxJournalLine)
	parse := Parser{trustsSum: j.onLine != nil}
	for {
		text, whole, err := reader.Cut()
		switch {
		case err != nil && !lines.AtEnd(err):
			return disk.Bare(err)
		case !whole:
			return j.explainBadLine(text, reader, &parse)
		case err != nil && sumHolds(withLineFeed(text)):
			j.NoFeed = true
		case err != nil:
			return j.acceptTornLine(text)
		}
		err = j.countLine(&parse, text)
		if errors.Is(err, ErrForeign) {
			return j.explainBadLine(text, reader, &parse)
		}
		if err != nil || j.NoFeed {
			return err
		}
	}
}

// countLine checks one whole line and counts it. It passes lines of the output in question to onLine.
func (j *Journal) countLine(parse *Parser, text []byte) error {
	size := int64(len(text))
	if j.NoFeed {
		text = withLineFeed(text)
	}
	sum, fault := parse.key(text, j.isErrorsFile)
	if errors.Is(fault, ErrOtherKind) {
		return fmt.Errorf("line %d: %w", j.Lines+1, fault)
	}
	if fault != nil {
		return j.damagedLine()
	}
	if j.onLine != nil && j.isOurs(parse) {
		if err := j.onLine(text, sum, parse); err != nil {
			return err
		}
	}
	j.Lines++
	j.Size += size
	if !j.isOurs(parse) {
		j.Others++
		return nil
	}
	if parse.simulated {
		j.Simulated++
	}
	if j.isErrorsFile && parse.isUnaskedOf(j.inputs) {
		j.unasked.add(sum)
	}
	if j.IDs != nil {
		j.IDs.Add(string(rawjson.Unquote(parse.id)))
	}
	if !j.noKeys && !j.Keys.add(sum) {
		if j.Repeated++; j.Repeated == 1 {
			j.RepeatedLine = j.Lines
		}
	}
	return nil
}

// isOurs reports whether the line read last belongs to the output in question. A line that
// names none may belong to any.
func (j *Journal) isOurs(parse *Parser) bool {
	return j.output == "" || len(parse.output) == 0 || string(rawjson.Unquote(parse.output)) == j.output
}

// withLineFeed returns a copy of a last line, with the line feed that it lacks.
func withLineFeed(text []byte) []byte { return append(text[:len(text):len(text)], '\n') }

// damagedLine returns the error for the line after the last good one. If that is the first, nothing shows yet that
// the file is ours, and the error is ErrForeign.
func (j *Journal) damagedLine() error {
	if j.Lines == 0 {
		return ErrForeign
	}
	return fmt.Errorf("line %d: %w", j.Lines+1, ErrDamaged)
}

// explainBadLine returns the error for a bad line, as damagedLine does. For a bad first line it also finds out
// whether the file is ours all the same. The line itself may show that, or one that follows it.
func (j *Journal) explainBadLine(text []byte, rest *lines.Reader, parse *Parser) error {
	fault := j.damagedLine()
	ours := len(text) >= len(opening) && mayBeOurs(text)
	for n := 0; errors.Is(fault, ErrForeign) && !ours && n < lookAhead; n++ {
		text, whole, err := rest.Cut()
		if err != nil && len(text) == 0 {
			break
		}
		_, other := parse.key(withLineFeed(bytes.TrimSuffix(text, []byte{'\n'})), j.isErrorsFile)
		ours = whole && (other == nil || errors.Is(other, ErrOtherKind))
	}
	if !ours {
		return fault
	}
	return fmt.Errorf("line %d: %w", j.Lines+1, ErrDamaged)
}

// acceptTornLine takes the rest of a file for a torn line if a line of ours may begin so. After lines of ours a few
// bytes are enough. They may end in zeros: a file system may have made the file longer, and filled it no more
// before a loss of power. If no line shows that the file is ours, the rest must show it, by a whole beginning.
func (j *Journal) acceptTornLine(rest []byte) error {
	written := rest
	if j.Lines > 0 {
		written = bytes.TrimRight(rest, "\x00")
	}
	says := j.Lines > 0 || len(rest) == 0 || len(rest) >= len(opening)
	if !says || !mayBeOurs(written) {
		return j.damagedLine()
	}
	j.Torn = int64(len(rest))
	return nil
}

// Append cuts off the torn line, or adds the line feed that the last line lacks. It returns
// the Tail behind the last whole line. It makes a missing file, and refuses a file that has
// changed since it was read (ErrChanged).
func (j *Journal) Append() (t *Tail, err error) {
	t = j.tail()
	if t.File, err = t.Open(); err != nil {
		return nil, err
	}
	return t, nil
}

// AppendLazily is Append for a file that may turn out not to be needed: a missing file is
// made with the first line. A file that is there is opened even if it is empty, so that a
// file that cannot be written to shows at once.
func (j *Journal) AppendLazily() (*Tail, error) {
	if info, err := os.Stat(j.path); j.exists || err == nil && info.Mode().IsRegular() {
		return j.Append()
	}
	return j.tail(), nil
}

// tail returns the Tail behind the last whole line, without opening the file.
func (j *Journal) tail() *Tail {
	size := j.Size
	if j.NoFeed {
		size++
	}
	return &Tail{Name: j.path, Size: size, Open: j.open}
}

// open opens the file for lines behind its last whole one, and makes a missing file. Until it is
// closed, the file is this process's own. A file that has changed since it was read is refused.
func (j *Journal) open() (*os.File, error) {
	if !j.exists {
		return openEmpty(j.path)
	}
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_APPEND, fileMode)
	if err == nil {
		if err = j.claim(file); err != nil {
			_ = file.Close() // nothing was written
		}
	}
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", j.path, disk.Bare(err))
	}
	return file, nil
}

// claim makes an open file this process's own, and only then mends it: another process may be writing it.
func (j *Journal) claim(file *os.File) error {
	if err := keepOthersOut(file); err != nil {
		return err
	}
	return j.trimToWholeLines(file)
}

// trimToWholeLines makes the file end with its last whole line, and that line with a line feed. It refuses a file
// of another size than was read.
func (j *Journal) trimToWholeLines(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != j.Size+j.Torn {
		return ErrChanged
	}
	if j.NoFeed {
		_, err = file.WriteString("\n")
		return err
	}
	if j.Torn == 0 {
		return nil
	}
	return file.Truncate(j.Size)
}

// IDBytesPerItem bounds the memory of an IDSet for each id: 6 bytes and the room to grow
// in. It is the mean of many; a fixed 400 KB come on top.
const IDBytesPerItem = 7.5

// idWidth stores 62 bits of a hash. Among ten million ids, two different ones are taken for
// one with a chance of 10⁻⁵; then one gets another name without need.
const idWidth = 6

// IDSet is a set of the custom ids that stand in an output.
type IDSet struct {
	hash keys.Hasher
	ids  keys.Set
}

func newIDSet() *IDSet { return &IDSet{keys.NewHasher(), keys.Set{Width: idWidth}} }

// Add adds the id, and reports whether it was not there yet.
func (s *IDSet) Add(id string) bool { return s.ids.Add(s.hash.Text(id)) }

// Has reports whether the id is there.
func (s *IDSet) Has(id string) bool { return s.ids.Has(s.hash.Text(id)) }

// Len returns the number of ids.
func (s *IDSet) Len() int { return s.ids.Len() }

// Tail is the end of a result file, behind which lines may be written. It lies after the
// last whole line of an earlier run, or at the beginning of a new file. Its owner gives
// it to one saver or closes it.
type Tail struct {
	Name string
	Size int64                    // of the whole lines
	File *os.File                 // nil if the first line makes it
	Open func() (*os.File, error) // opens the file, and makes it if it is missing; the caller closes it
}

// Close closes a file to which nobody is going to write.
func (t *Tail) Close() error {
	if t.File == nil {
		return nil
	}
	file := t.File
	t.File = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", t.Name, disk.Bare(err))
	}
	return nil
}
