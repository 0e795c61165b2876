package export

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// A window of windowSize is read at once, and begins before the line that is wanted: answers come almost in
// the order of the input, so the next lines mostly lie in one window, on either side.
const (
	windowSize   = 64 << 10
	windowBefore = windowSize / 4
)

// A window reads lines of a file by their offsets.
type window struct {
	file *os.File
	text []byte // of the file, from at on
	at   int64
}

func openWindow(name string) (*window, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &window{file: file}, nil
}

func (w *window) close() {
	if w != nil {
		_ = w.file.Close() // it was only read
	}
}

// line returns the line at an offset, with a line feed. It is valid until the next call.
func (w *window) line(at int64) ([]byte, error) {
	if i := at - w.at; i >= 0 && i < int64(len(w.text)) {
		if end := bytes.IndexByte(w.text[i:], '\n'); end >= 0 {
			return w.text[i : i+int64(end)+1], nil
		}
	}
	for before, size := min(at, windowBefore), windowSize; ; before, size = 0, 2*size {
		if cap(w.text) < size {
			w.text = make([]byte, size)
		}
		n, err := w.file.ReadAt(w.text[:size], at-before)
		w.at, w.text = at-before, w.text[:n]
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return nil, err
		}
		text := w.text[min(int64(n), before):]
		if feed := bytes.IndexByte(text, '\n'); feed >= 0 {
			return text[:feed+1], nil
		}
		if end { // the last line lacks its line feed
			return append(text[:len(text):len(text)], '\n'), nil
		}
	}
}

// newPlaces returns places with room for each line of the files, as growing would need several times the memory. It
// ignores files that cannot be read; reading them later shows the error.
func newPlaces(files ...string) places {
	n := len(files) // a last line may lack its line feed
	buffer := make([]byte, windowSize)
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		for size := 1; size > 0; {
			size, _ = file.Read(buffer)
			n += bytes.Count(buffer[:size], []byte{'\n'})
		}
		_ = file.Close() // it was only read
	}
	return make(places, 0, n)
}
