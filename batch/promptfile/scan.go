package promptfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
)

var (
	// ErrInput says that the input cannot be read.
	ErrInput = errors.New("the input cannot be read")
	// ErrHalted says that Config.Drain was closed before the first call.
	ErrHalted = errors.New("promptfile: stopped before the first call")
)

// Scanned is what a Scan has found besides requests.
type Scanned struct {
	Lines  int // that were read, blank and bad ones included
	Digest prompts.Digest
	Refused
}

// Scan reads an input through, or up to cfg.Limit, and calls nothing. Take is given each
// request, whose Body and Metadata last until it returns. The error is ErrHalted once halt
// is closed, which may be nil; any other tells why the input cannot be read on. Name,
// Checked and Passing of cfg are Scan's. Of a file, a complaint about an id used twice
// names the line that had it first; a stream cannot be read again for that.
func Scan(in Input, cfg prompts.Config, halt <-chan struct{}, take func(prompts.Request)) (Scanned, error) {
	cfg.Checked, cfg.Passing = false, true
	var found Scanned
	if err := found.read(in, cfg, halt, take); err != nil || in.Stream {
		return found, err
	}
	return found, nameFirst(in, cfg, found.Bad.First)
}

func (s *Scanned) read(in Input, cfg prompts.Config, halt <-chan struct{}, take func(prompts.Request)) error {
	return in.Read(cfg, func(file io.Reader, cfg prompts.Config) error {
		reader := prompts.NewReader(file, cfg)
		defer func() { s.Lines, s.Digest = reader.Line(), reader.Digest() }()
		for req, err := range reader.All() {
			if isClosed(halt) {
				return ErrHalted
			}
			if err == nil {
				take(req)
			} else if err = s.note(err); err != nil {
				return err
			}
		}
		return nil
	})
}

func isClosed(halt <-chan struct{}) bool {
	select {
	case <-halt:
		return true
	default:
		return false
	}
}

// nameFirst completes complaints about ids used twice: of most ids the reader
// remembers only that they were used, not where.
func nameFirst(in Input, cfg prompts.Config, bad []*prompts.LineError) error {
	if len(bad) == 0 {
		return nil
	}
	return in.Read(cfg, func(file io.Reader, cfg prompts.Config) error { return prompts.FirstLines(file, cfg, bad) })
}

// Refused are the lines of an input that are not asked.
type Refused struct {
	Bad            BadLines // that are no requests
	Untranslatable BadLines // that cannot be said in the provider's words
}

// note takes err for a line of either sort, or gives it back.
func (r *Refused) note(err error) error {
	if errors.Is(err, prompts.ErrUntranslatable) {
		return r.Untranslatable.Note(err)
	}
	return r.Bad.Note(err)
}

// Fatal are those for which nothing is to be called, in the order of the input: all that
// are not skipped. It is nil if there are none.
func (r *Refused) Fatal(skipBad, skipUntranslatable bool) *BadLines {
	var fatal BadLines
	if !skipBad {
		fatal.join(&r.Bad)
	}
	if !skipUntranslatable {
		fatal.join(&r.Untranslatable)
	}
	if fatal.All == 0 {
		return nil
	}
	return &fatal
}

// BadLines are the lines of an input that are no requests. As an error it says what is
// wrong with the first of them, a line each.
type BadLines struct {
	First   []*prompts.LineError // prompts.MaxComplaints of them, and of those without a model one
	All     int
	NoModel int // of All, those that only lack a model: Reader.DefaultModel mends them all
}

// Note takes err for a bad line. One that is none is given back: it ends the reading.
func (b *BadLines) Note(err error) error {
	var bad *prompts.LineError
	if !errors.As(err, &bad) {
		return err
	}
	b.All++
	if bad.LacksModel() {
		b.NoModel++
	}
	if again := bad.LacksModel() && b.NoModel > 1; !again && len(b.First) < prompts.MaxComplaints {
		b.First = append(b.First, bad)
	}
	return nil
}

// join adds others, of which the first are named.
func (b *BadLines) join(others *BadLines) {
	b.All += others.All
	b.NoModel += others.NoModel
	b.First = append(b.First, others.First...)
	slices.SortStableFunc(b.First, func(one, other *prompts.LineError) int { return cmp.Compare(one.Line, other.Line) })
	b.First = b.First[:min(len(b.First), prompts.MaxComplaints)]
}

// Error has a line for each bad line that is known, and one for the others.
func (b *BadLines) Error() string {
	var text strings.Builder
	noun := "lines"
	if b.All == 1 {
		noun = "line"
	}
	fmt.Fprintf(&text, "promptfile: %d bad %s, nothing was called", b.All, noun)
	for _, bad := range b.First {
		text.WriteString("\n" + bad.Error())
	}
	if more := b.All - len(b.First); more > 0 {
		fmt.Fprintf(&text, "\nand %d more", more)
	}
	return text.String()
}
