package promptfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
)

// A scan gives each request, counts lines and bad ones, and says which line of a file had
// an id first, however far back; of a stream it cannot.
func TestScan(t *testing.T) {
	var text strings.Builder
	for i := range 5000 { // more than a reader remembers the lines of
		fmt.Fprintln(&text, ask(fmt.Sprint(i)))
	}
	text.WriteString("\n[]\n" + ask("4700") + "\n")
	path := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, path, text.String())
	file, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	stream := Stream("in", &readOnce{in: strings.NewReader(text.String())})
	for want, in := range map[string]Input{"already used on line 4701": file, "already used on an earlier line": stream} {
		items := 0
		got, err := Scan(in, prompts.Config{}, nil, func(prompts.Request) { items++ })
		if err != nil || items != 5000 || got.Lines != 5003 || got.Bad.All != 2 || !strings.Contains(got.Bad.First[1].Error(), want) {
			t.Errorf("%s: %d items, %+v, %v", in.Name, items, got, err)
		}
	}
}

// readOnce is a stream beyond whose end nobody may read: a terminal would wait there.
type readOnce struct {
	in    io.Reader
	ended bool
}

func (r *readOnce) Read(p []byte) (int, error) {
	if r.ended {
		return 0, errors.New("read beyond the end")
	}
	n, err := r.in.Read(p)
	r.ended = err == io.EOF
	return n, err
}

// A scan reads no further than its limit, and no further once it must halt. If a file
// cannot be opened, the error says that it is the input.
func TestScanEnds(t *testing.T) {
	d := newDesk(t, ask("a"), "", ask("b"), ask("c"))
	in, err := File(d.in)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	note := func(q prompts.Request) { ids = append(ids, q.ID) }
	if got, err := Scan(in, prompts.Config{Limit: 2}, nil, note); err != nil || got.Lines != 3 || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("%v, %+v, %v", ids, got, err)
	}
	halt := make(chan struct{})
	ids = nil
	_, err = Scan(in, prompts.Config{}, halt, func(q prompts.Request) { note(q); close(halt) })
	if !errors.Is(err, ErrHalted) || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("%v, %v", ids, err)
	}
	if err := os.Remove(d.in); err != nil {
		t.Fatal(err)
	}
	if _, err := Scan(in, prompts.Config{}, nil, note); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}
