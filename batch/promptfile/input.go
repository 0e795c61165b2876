package promptfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

// Input is a source of prompts: File, Stream or Join makes one.
type Input struct {
	Name string // for messages
	// Stream says that the input can be read only once: its lines are checked as they come.
	Stream bool
	files  []inputFile
}

// inputFile is one file of an input.
type inputFile struct {
	name   string
	format prompts.Format // of one file among several
	open   func() (io.ReadCloser, error)
	stat   func() (os.FileInfo, error) // nil for a stream
}

// File returns the input for a prompt file, plain or packed by gzip or zstd. A missing file
// is fs.ErrNotExist, a folder journal.ErrDirectory. A file that is not regular, such as a
// named pipe, is a stream.
func File(path string) (Input, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Input{}, fmt.Errorf("promptfile: %w", err)
	case info.IsDir():
		return Input{}, fmt.Errorf("promptfile: open %s: %w", path, journal.ErrDirectory)
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	stat := func() (os.FileInfo, error) { return os.Stat(path) }
	return Input{Name: path, Stream: !info.Mode().IsRegular(), files: []inputFile{{name: path, open: open, stat: stat}}}, nil
}

// Stream returns an input that reads prompts from in, such as standard input, while they
// are run. Nothing ends a read that stalls. So a run that is over leaves the reading
// goroutine behind, until its read returns.
func Stream(name string, in io.Reader) Input {
	open := func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	return Input{Name: name, Stream: true, files: []inputFile{{name: name, open: open}}}
}

// Join makes one input of several, in their order. Line numbers go on from file to file,
// and an id is unique over all. format returns the format of the file with that name; the
// Reader's Format is then ignored. If one of them is a stream, so is the whole. A file that
// is named twice is journal.ErrSameFile.
func Join(format func(name string) prompts.Format, inputs ...Input) (Input, error) {
	if len(inputs) == 1 {
		return inputs[0], nil
	}
	var joined Input
	seen := map[string]bool{}
	for _, in := range inputs {
		joined.Stream = joined.Stream || in.Stream
		for _, f := range in.files {
			full := fullName(f.name)
			if seen[full] {
				return joined, fmt.Errorf("promptfile: %s is named twice: %w", f.name, journal.ErrSameFile)
			}
			seen[full] = true
			f.format = format(f.name)
			joined.files = append(joined.files, f)
		}
	}
	if len(joined.files) == 0 {
		return joined, nil
	}
	first, last := joined.files[0].name, joined.files[len(joined.files)-1].name
	joined.Name = first + " and " + last
	if len(joined.files) > 2 {
		joined.Name = fmt.Sprintf("%d files (%s … %s)", len(joined.files), first, last)
	}
	return joined, nil
}

// fullName returns a file's absolute name without links.
func fullName(name string) string {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	if full, err := filepath.Abs(name); err == nil {
		name = full
	}
	return name
}

// Several reports whether the input has more than one file.
func (in Input) Several() bool { return len(in.files) > 1 }

// Files returns the names of the input's files.
func (in Input) Files() []string {
	if len(in.files) == 0 {
		return []string{in.Name}
	}
	var names []string
	for _, f := range in.files {
		names = append(names, f.name)
	}
	return names
}

// Read opens the input at its beginning, and closes it when read returns; a stream goes on
// where it was. It passes to read the arguments of a prompts.Reader: the first file, and
// cfg with the settings of the others.
func (in Input) Read(cfg prompts.Config, read func(io.Reader, prompts.Config) error) error {
	var open io.ReadCloser
	index := -1
	more := func() (f prompts.File, err error) {
		if index++; index == len(in.files) {
			return f, io.EOF
		}
		if open != nil {
			_ = open.Close() // it was only read
		}
		file := in.files[index]
		if open, err = file.open(); err != nil {
			open = nil
			return f, fmt.Errorf("promptfile: %w: %w", err, ErrInput)
		}
		return prompts.File{Name: file.name, In: open, Format: file.format}, nil
	}
	first, err := more()
	if err != nil {
		return err
	}
	defer func() {
		if open != nil {
			_ = open.Close() // it was only read
		}
	}()
	if cfg.Name = in.Name; in.Several() {
		cfg.Name, cfg.Format, cfg.More = first.Name, first.Format, more
	}
	return read(first.In, cfg)
}

// stat returns the state of each file; the error names the missing ones.
func (in Input) stat() (all []os.FileInfo, err error) {
	for _, f := range in.files {
		info, fault := f.stat()
		err = errors.Join(err, fault)
		all = append(all, info)
	}
	return all, err
}

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

// read adds what it finds to s, and passes each good request to take. A bad line is counted and
// ends nothing. Lines and Digest tell how far it came, also after an error.
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

// isClosed reports whether halt is closed; a nil channel never is.
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
