package promptfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	var all Input
	seen := map[string]bool{}
	for _, in := range inputs {
		all.Stream = all.Stream || in.Stream
		for _, f := range in.files {
			full := fullName(f.name)
			if seen[full] {
				return all, fmt.Errorf("promptfile: %s is named twice: %w", f.name, journal.ErrSameFile)
			}
			seen[full] = true
			f.format = format(f.name)
			all.files = append(all.files, f)
		}
	}
	if len(all.files) == 0 {
		return all, nil
	}
	first, last := all.files[0].name, all.files[len(all.files)-1].name
	all.Name = first + " and " + last
	if len(all.files) > 2 {
		all.Name = fmt.Sprintf("%d files (%s … %s)", len(all.files), first, last)
	}
	return all, nil
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
	at := -1
	more := func() (f prompts.File, err error) {
		if at++; at == len(in.files) {
			return f, io.EOF
		}
		if open != nil {
			_ = open.Close() // it was only read
		}
		of := in.files[at]
		if open, err = of.open(); err != nil {
			open = nil
			return f, fmt.Errorf("promptfile: %w: %w", err, ErrInput)
		}
		return prompts.File{Name: of.name, In: open, Format: of.format}, nil
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
