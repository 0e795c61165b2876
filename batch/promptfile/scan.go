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

// Scanned holds the findings of a Scan, apart from the requests.
type Scanned struct {
	Lines  int // lines read, blank and bad ones included
	Digest prompts.Digest
	Refused
}

// Scan reads an input to its end, or to cfg.Limit, and calls no provider. It passes each
// request to take; the request's Body and Metadata last until take returns. The error is
// ErrHalted once halt, which may be nil, is closed; any other says why the input cannot be
// read. Scan sets Name, Checked and Passing of cfg. In a file, a complaint about an id used
// twice names the line that had it first; a stream cannot be read again for that.
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

// nameFirst completes complaints about ids used twice. The reader remembers of most ids
// only that they were used, not where.
func nameFirst(in Input, cfg prompts.Config, bad []*prompts.LineError) error {
	if len(bad) == 0 {
		return nil
	}
	return in.Read(cfg, func(file io.Reader, cfg prompts.Config) error { return prompts.FirstLines(file, cfg, bad) })
}

// Refused holds the lines of an input that are not asked.
type Refused struct {
	Bad            BadLines // lines that are not requests
	Untranslatable BadLines // lines that cannot be translated for the provider
}

// note records err if it is about a line of either sort, and otherwise returns it.
func (r *Refused) note(err error) error {
	if errors.Is(err, prompts.ErrUntranslatable) {
		return r.Untranslatable.Note(err)
	}
	return r.Bad.Note(err)
}

// Fatal returns the lines that forbid any call, in the order of the input: all lines that
// are not skipped. It returns nil if there are none.
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

// BadLines holds the lines of an input that are not requests. As an error it says what is
// wrong with the first of them, a line each.
type BadLines struct {
	First   []*prompts.LineError // at most prompts.MaxComplaints, and one of those without a model
	All     int
	NoModel int // of All, lines that only lack a model: Reader.DefaultModel mends them all
}

// Note records err if it is about a bad line. Any other error is returned: it ends the
// reading.
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

// join adds others, in the order of the input, and keeps the first prompts.MaxComplaints
// of all.
func (b *BadLines) join(others *BadLines) {
	b.All += others.All
	b.NoModel += others.NoModel
	b.First = append(b.First, others.First...)
	slices.SortStableFunc(b.First, func(one, other *prompts.LineError) int { return cmp.Compare(one.Line, other.Line) })
	b.First = b.First[:min(len(b.First), prompts.MaxComplaints)]
}

// Error has a line for each bad line in First, and one for the others.
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
