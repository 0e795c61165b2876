package saver

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/headrace/headrace/batch/journal"
)

// stuck takes nothing until it is let go.
type stuck struct{ free chan struct{} }

func (s stuck) Write(p []byte) (int, error) { <-s.free; return len(p), nil }

// Long lines do not gather beyond megabytes before a stalled disk: Save waits until its
// long line is in a bundle.
func TestLongLinesWaitOutside(t *testing.T) {
	const size, all = 1 << 20, 12
	long := []byte(`"` + strings.Repeat("a", size) + `"`)
	answer, metadata := savedLine(1), savedLine(1)
	answer.Response = &journal.Response{StatusCode: 200, Body: long}
	metadata.Headrace.Metadata = long
	for _, l := range []journal.Line{answer, metadata} {
		waitsOutside(t, l, size, all)
	}
}

func waitsOutside(t *testing.T, l journal.Line, size, all int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out := stuck{make(chan struct{})}
		s := To(out, "out", Config{})
		taken := make(chan bool, all)
		go func() {
			for range all {
				s.Save(l, nil)
				taken <- true
			}
			for n := range queueLines { // short ones need not wait
				s.Save(savedLine(n), nil)
			}
			close(taken)
		}()
		synctest.Wait()
		// The bundle that is being written has one line at least, the other is full.
		if n := len(taken) * size; n < commitBytes || n > 2*commitBytes {
			t.Errorf("%d bytes are held", n)
		}
		close(out.free)
		n := 0
		for range taken {
			n++
		}
		if err := s.Close(); err != nil || n != all {
			t.Errorf("%d lines, %v", n, err)
		}
	})
}

// A line is long by whatever of it is.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("a", longLine+1)
	for what, h := range map[string]journal.Headrace{"metadata": {Metadata: []byte(long)}, "text": {Text: &long}} {
		if !isLong(&journal.Line{Headrace: h}) {
			t.Errorf("a line with long %s is not long", what)
		}
	}
	if !isLong(&journal.Line{Response: &journal.Response{Body: []byte(long)}}) || isLong(&journal.Line{Response: &journal.Response{}}) {
		t.Error("a line with a long body is not long, or a short one is")
	}
}

// Save does not wait with a long line if the saver cannot save.
func TestLongLinesAfterAFault(t *testing.T) {
	s, _ := newSaver(t, Config{}, func(s *Saver) { s.keeper.disk.SyncData = func(*os.File) error { return syscall.EIO } })
	l, lost := savedLine(1), 0
	l.Headrace.Metadata = []byte(`"` + strings.Repeat("a", 2*longLine) + `"`)
	for range 30 {
		s.Save(l, func(err error) {
			if err != nil {
				lost++
			}
		})
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) || lost != 30 {
		t.Errorf("%v, %d lost", err, lost)
	}
}
