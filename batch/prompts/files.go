package prompts

import (
	"io"
	"sort"
)

// File is one of several files that form one input. A Config holds the same fields for the
// first file.
type File struct {
	Name   string // names it in complaints
	In     io.Reader
	Format Format
}

// fileAt is a file, with its end in the input.
type fileAt struct {
	name string
	end  int // lines of the input up to its end
}

// nextFile continues with the next file. The error is io.EOF if there is none.
func (r *Reader) nextFile() error {
	file, err := r.cfg.More()
	if err != nil {
		return err
	}
	r.before = append(r.before, fileAt{r.cfg.Name, r.Line()})
	r.cfg.Name, r.cfg.Format, r.first = file.Name, file.Format, 0
	r.open(file.In)
	return nil
}

// linesBefore counts the lines of the files before the current one.
func (r *Reader) linesBefore() int {
	if len(r.before) == 0 {
		return 0
	}
	return r.before[len(r.before)-1].end
}

// inFile turns By, a line of the input, into a line of its file. It sets In if that file is
// not the current one.
func (r *Reader) inFile(m *Mark) {
	i := sort.Search(len(r.before), func(i int) bool { return m.By <= r.before[i].end })
	if m.By == 0 {
		return
	}
	if i < len(r.before) {
		m.In = r.before[i].name
	}
	if i > 0 {
		m.By -= r.before[i-1].end
	}
}

// mark returns the place of a request, for a complaint about a line of file.
func (q *Request) mark(file string) Mark {
	switch q.File {
	case "":
		return Mark{By: q.Line}
	case file:
		return Mark{By: q.FileLine}
	}
	return Mark{By: q.FileLine, In: q.File}
}
