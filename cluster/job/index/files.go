package index

import (
	"context"
	"errors"
	"io"
	"sort"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
)

// files opens the inputs of a job one after the other, for one reader of all of them.
type files struct {
	*Source
	ctx    context.Context
	above  []int // for each begun input, the number of lines before it
	reader *prompts.Reader
	begun  func() error // called when an input begins, once the lines before it are read
	in     *pieces
}

// config returns the settings of a reader of all inputs, and the file that it begins with.
func (f *files) config() (prompts.File, prompts.Config, error) {
	cfg, err := f.Record.Reading.Config()
	if err != nil {
		return prompts.File{}, cfg, err
	}
	cfg.Serves, cfg.Takes, cfg.More = f.Serves, f.Takes, f.more
	cfg.Plain, cfg.Passing, cfg.NoKeys = true, true, true
	first, err := f.more()
	if errors.Is(err, io.EOF) {
		first, err = prompts.File{In: strings.NewReader("")}, nil
	}
	cfg.Name, cfg.Format = first.Name, first.Format
	return first, cfg, err
}

// more opens the next input.
func (f *files) more() (file prompts.File, err error) {
	next, lines := len(f.above), 0
	if f.reader != nil {
		lines = f.reader.Line()
	}
	if f.above = append(f.above, lines); f.begun != nil {
		if err := f.begun(); err != nil {
			return file, err
		}
	}
	if next >= len(f.Record.Inputs) {
		return file, io.EOF
	}
	in := &f.Record.Inputs[next]
	cfg, err := in.ReaderOf(prompts.Config{})
	f.in = &pieces{files: f, of: in}
	return prompts.File{Name: cfg.Name, Format: cfg.Format, In: f.in}, err
}

// place returns the input that holds a line, from 1, and the number of lines before that input.
func (f *files) place(line int) (input, above int) {
	i := sort.SearchInts(f.above, line) - 1
	return i, f.above[i]
}

func (f *files) close() {
	if f.in != nil && f.in.open != nil {
		_ = f.in.open.Close() // it was only read
	}
}

// pieces reads the objects of an input, one after the other.
type pieces struct {
	*files
	of   *job.Input
	next int
	open io.ReadCloser
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (n int, err error) {
	for n == 0 && err == nil {
		if p.open == nil {
			if p.next == len(p.of.Objects) {
				return 0, io.EOF
			}
			o := &p.of.Objects[p.next]
			if p.open, err = p.Source.open(p.ctx, o, 0, o.Bytes); err != nil {
				return 0, err
			}
			p.next++
		}
		if n, err = p.open.Read(b); err == io.EOF { //nolint:errorlint // a wrapped one says that something is missing
			err = p.open.Close()
			p.open = nil
		}
	}
	return n, err
}
