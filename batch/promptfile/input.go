package promptfile

import (
	"fmt"
	"io"
	"os"

	"github.com/headrace/headrace/batch/journal"
)

// Input is where prompts come from: File or Stream makes one.
type Input struct {
	Name string // for messages
	// Stream says that it can be read only once: its lines are checked as they come.
	Stream bool
	open   func() (io.ReadCloser, error)
	stat   func() (os.FileInfo, error) // nil of a stream
}

// File is a prompt file, packed by gzip or zstd or not. One that is not there is
// fs.ErrNotExist, a folder journal.ErrDirectory. What is no regular file, such as a
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
	return Input{Name: path, Stream: !info.Mode().IsRegular(), open: open, stat: stat}, nil
}

// Stream reads prompts from in, such as standard input, while they are run. Nothing ends
// a read that stalls, so a run that is over leaves the goroutine that reads behind, until
// its read returns.
func Stream(name string, in io.Reader) Input {
	return Input{Name: name, Stream: true, open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}
}

// Open opens the input at its beginning; a stream goes on where it was.
func (in Input) Open() (io.ReadCloser, error) { return in.open() }
