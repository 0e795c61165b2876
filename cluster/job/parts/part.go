package parts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// ErrDamaged says that a part has changed since it was written.
var ErrDamaged = errors.New("it is not what was written")

// footer is the last line of a part.
type footer struct {
	Format int    `json:"format"` // that of the job's record
	Job    string `json:"job"`
	Chunk  int    `json:"chunk"`
	Round  int    `json:"round"`
	Bytes  int64  `json:"bytes"` // of the lines before it
	Sums
}

// A footer ends in a CRC-32C of all earlier bytes of the part.
const (
	footerBegins = `{"headrace_part":`
	sumBegins    = `,"crc":"`
	sumEnds      = "\"}\n"
	sumDigits    = 8
	sumLength    = len(sumBegins) + sumDigits + len(sumEnds)
	// footerRoom exceeds the bytes of any footer: its numbers, and the job's name.
	footerRoom = 2048
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openText returns the footer up to its sum.
func (f *footer) openText() []byte {
	text, _ := json.Marshal(f) // it only fails on a NaN or an infinity, and sums have neither
	return append([]byte(footerBegins), text...)
}

// closeFooter completes a footer by the sum of all bytes before it.
func closeFooter(open []byte, sum uint32) []byte {
	var digits [4]byte
	digits[0], digits[1], digits[2], digits[3] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	text := append(open[:len(open):len(open)], sumBegins...)
	return append(hex.AppendEncode(text, digits[:]), sumEnds...)
}

// parseFooter reads a footer, and returns its sum.
func parseFooter(line []byte) (f footer, sum uint32, err error) {
	if len(line) < len(footerBegins)+sumLength || !bytes.HasPrefix(line, []byte(footerBegins)) {
		return f, 0, ErrDamaged
	}
	open := line[:len(line)-sumLength]
	digits := line[len(open)+len(sumBegins) : len(line)-len(sumEnds)]
	if _, err := fmt.Sscanf(string(digits), "%08x", &sum); err != nil || !bytes.Equal(closeFooter(open, sum), line) {
		return f, 0, ErrDamaged
	}
	if err := json.Unmarshal(open[len(footerBegins):], &f); err != nil {
		return f, 0, ErrDamaged
	}
	if f.Format > job.RecordFormat {
		return f, 0, job.ErrNewer
	}
	return f, sum, nil
}

// belongsTo reports whether the footer is that of the given part.
func (f *footer) belongsTo(name string, chunk, round int) bool {
	return f.Job == name && f.Chunk == chunk && f.Round == round
}

// Sums holds the totals of the lines of parts.
type Sums struct {
	Lines   int `json:"lines"`   // in all: done, failed and skipped
	Done    int `json:"done"`    // items with a result
	Failed  int `json:"failed"`  // items that failed for good, and may be tried again
	Skipped int `json:"skipped"` // lines that were never asked: bad ones, and untranslatable ones

	Simulated int           `json:"simulated,omitempty"` // items whose answer is made up
	Attempts  int64         `json:"attempts"`
	Usage     journal.Usage `json:"usage"`
	// Doubtful are the calls of items that may be billed in addition to Usage.
	Doubtful journal.Doubtful `json:"doubtful,omitzero"`
	CostUSD  float64          `json:"cost_usd"` // as far as it is known
	Priced   int              `json:"priced"`   // items whose cost is known
	// Unpriced are items of unknown cost: results, and failures that used tokens.
	Unpriced int `json:"unpriced"`
}

// wasSkipped reports whether a line was never asked.
func wasSkipped(e *journal.Entry) bool {
	return e.Code == promptfile.CodeInvalidLine || e.Code == promptfile.CodeUntranslatable
}

// add counts one line.
func (s *Sums) add(e *journal.Entry) {
	s.Lines++
	switch {
	case !e.Failed:
		s.Done++
	case wasSkipped(e):
		s.Skipped++
		return
	default:
		s.Failed++
	}
	s.Attempts += e.Attempts
	s.Usage = plus(s.Usage, e.Usage)
	s.Doubtful.Add(e.Doubtful)
	if e.Simulated {
		s.Simulated++
	}
	switch {
	case e.CostUSD != nil:
		s.CostUSD += *e.CostUSD
		s.Priced++
	case !e.Failed || e.Usage != (journal.Usage{}):
		s.Unpriced++
	}
}

// Plus adds two sums.
func (s Sums) Plus(o Sums) Sums {
	s.Lines += o.Lines
	s.Done += o.Done
	s.Failed += o.Failed
	s.Skipped += o.Skipped
	s.Simulated += o.Simulated
	s.Attempts += o.Attempts
	s.Usage = plus(s.Usage, o.Usage)
	s.Doubtful.Add(o.Doubtful)
	s.CostUSD += o.CostUSD
	s.Priced += o.Priced
	s.Unpriced += o.Unpriced
	return s
}

// After returns the sums of a round together with those of the rounds before it, whose failed items it has tried
// again. Usage adds up; the failed items are those that failed last.
func (s Sums) After(before Sums) Sums {
	all := before.Plus(s)
	all.Lines, all.Failed = before.Lines, before.Failed-s.Done
	return all
}

func plus(a, b journal.Usage) journal.Usage {
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	a.CachedTokens += b.CachedTokens
	a.CacheWriteTokens += b.CacheWriteTokens
	a.ReasoningTokens += b.ReasoningTokens
	return a
}

// ErrIncomplete says that not every item of a chunk has ended.
var ErrIncomplete = errors.New("not each of its items has ended")

// Write creates the part of a chunk. The part must have the given number of lines: items, and lines that
// are skipped. The error is store.ErrExists if another worker was first, whose part then counts, and
// ErrIncomplete if there are fewer lines, or more.
func Write(ctx context.Context, s store.Store, c *job.Chunk, lines int, j *Joined) (Sums, error) {
	if j.Lines != lines {
		return j.Sums, fmt.Errorf("parts: write %s: %d lines of %d: %w", c, j.Lines, lines, ErrIncomplete)
	}
	f := footer{Format: job.FormatOf(c.Format), Job: c.Job, Chunk: c.Number, Round: c.Round, Bytes: j.bytes, Sums: j.Sums}
	b := &body{lines: j.All(), footer: f.openText()}
	defer b.rewind()
	size := j.bytes + int64(len(b.footer)+sumLength)
	if err := s.Create(ctx, job.PartName(c.Job, c.Number, c.Round), b, size); err != nil {
		return j.Sums, fmt.Errorf("parts: write %s: %w", c, err)
	}
	return j.Sums, nil
}

// body is a part during its writing. It can be read again from its beginning.
type body struct {
	lines  iter.Seq2[[]byte, error]
	footer []byte // up to its sum

	next func() ([]byte, error, bool) // nil at the beginning
	stop func()
	rest []byte
	sum  uint32
	at   int64
	done bool // the footer was given
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.done {
			return 0, io.EOF
		}
		if err := b.refill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.at += int64(n)
	return n, nil
}

// refill puts the next line into rest. After the last line it puts the footer there, which ends the part.
func (b *body) refill() error {
	if b.next == nil {
		b.next, b.stop = iter.Pull2(b.lines)
	}
	text, err, there := b.next()
	if err != nil {
		return err
	}
	if there {
		b.sum = crc32.Update(b.sum, castagnoli, text)
		b.rest = text
		return nil
	}
	b.sum = crc32.Update(b.sum, castagnoli, b.footer)
	b.rest, b.done = closeFooter(b.footer, b.sum), true
	return nil
}

// rewind goes back to the beginning.
func (b *body) rewind() {
	if b.stop != nil {
		b.stop()
	}
	*b = body{lines: b.lines, footer: b.footer}
}

// Seek returns the position, or goes back to the beginning: a store needs no more to send the part again.
func (b *body) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0:
	case whence == io.SeekStart && offset == 0:
		b.rewind()
	default:
		return b.at, errors.ErrUnsupported
	}
	return b.at, nil
}

// Line is one line of a part: a result or a failure.
type Line struct {
	journal.Entry
	Text []byte // as it was written, line feed included; valid until the next
}

// Read yields the lines of a part in the order of the input. Text that has changed since its writing is
// ErrDamaged. The first error ends the lines. Only the end shows that nothing is missing.
func Read(ctx context.Context, s store.Store, name string, chunk, round int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in, err := s.Open(ctx, job.PartName(name, chunk, round), 0, -1)
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer func() { _ = in.Close() }() // it was only read
		lines(in, name, chunk, round)(yield)
	}
}

// lines yields the lines of an open part.
func lines(in io.Reader, name string, chunk, round int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := partReader{in: bufio.NewReaderSize(in, 64<<10)}
		for {
			l, there, err := r.next()
			if err == nil && !there {
				err = r.check(name, chunk, round)
				if err == nil {
					return
				}
			}
			if err != nil {
				yield(Line{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err))
				return
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// partReader reads a part line by line.
type partReader struct {
	in     *bufio.Reader
	long   []byte
	parse  journal.Parser
	sum    uint32
	last   int // the line of the input read last
	footer []byte
}

// next returns a line; there is false where the footer begins.
func (r *partReader) next() (l Line, there bool, err error) {
	text, err := r.line()
	if err != nil {
		return l, false, err
	}
	if bytes.HasPrefix(text, []byte(footerBegins)) {
		r.footer = text
		return l, false, nil
	}
	e, err := r.parse.Parse(text)
	if err != nil || e.Line <= r.last {
		return l, false, ErrDamaged
	}
	r.last = e.Line
	r.sum = crc32.Update(r.sum, castagnoli, text)
	return Line{e, text}, true, nil
}

// line reads up to and including a line feed.
func (r *partReader) line() ([]byte, error) {
	part, err := r.in.ReadSlice('\n')
	if err == nil {
		return part, nil
	}
	r.long = r.long[:0]
	for ; errors.Is(err, bufio.ErrBufferFull) && len(r.long) <= journal.MaxJournalLine; part, err = r.in.ReadSlice('\n') {
		r.long = append(r.long, part...)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil, ErrDamaged
	}
	r.long = append(r.long, part...)
	return r.long, err
}

// check compares the footer with what was read.
func (r *partReader) check(name string, chunk, round int) error {
	f, sum, err := parseFooter(r.footer)
	if err != nil {
		return err
	}
	if read := crc32.Update(r.sum, castagnoli, r.footer[:len(r.footer)-sumLength]); read != sum || !f.belongsTo(name, chunk, round) {
		return ErrDamaged
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(ErrDamaged, err)
	}
	return nil
}

// sumsOf reads the sums of a part of so many bytes from its footer, without the lines.
func sumsOf(ctx context.Context, s store.Store, name string, chunk, round int, size int64) (Sums, error) {
	from := max(0, size-footerRoom)
	in, err := s.Open(ctx, job.PartName(name, chunk, round), from, size-from)
	if err != nil {
		return Sums{}, err
	}
	defer func() { _ = in.Close() }() // it was only read
	text, err := io.ReadAll(in)
	if err != nil {
		return Sums{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err)
	}
	line := text[bytes.LastIndexByte(text[:max(len(text)-1, 0)], '\n')+1:]
	f, _, err := parseFooter(line)
	if err == nil && !f.belongsTo(name, chunk, round) {
		err = ErrDamaged
	}
	if err != nil {
		return Sums{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err)
	}
	return f.Sums, nil
}

// Again returns the items of a chunk that a round tries again: the keys of those that failed in the
// latest part before it. Lines that were skipped do not count.
func Again(ctx context.Context, s store.Store, c *job.Chunk) (map[string]bool, error) {
	for round := c.Round - 1; round >= 0; round-- {
		failed, err := failedIn(ctx, s, c, round)
		if !errors.Is(err, store.ErrMissing) {
			return failed, err
		}
	}
	return nil, fmt.Errorf("parts: %s: there is no part before it: %w", c, store.ErrMissing)
}

// failedIn returns the keys of the items that failed in one round's part of a chunk. The error is
// [store.ErrMissing] if the round has no such part.
func failedIn(ctx context.Context, s store.Store, c *job.Chunk, round int) (map[string]bool, error) {
	failed := map[string]bool{}
	for l, err := range Read(ctx, s, c.Job, c.Number, round) {
		if err != nil {
			return nil, err
		}
		if l.Failed && !wasSkipped(&l.Entry) {
			failed[l.Key] = true
		}
	}
	return failed, nil
}
