package lines

import (
	"strings"
	"testing"
)

// The buffer of a long line is not held while short ones follow.
func TestLongLinesBufferIsGivenBack(t *testing.T) {
	r := New(strings.NewReader(strings.Repeat("a", 2*KeepBuffer)+"\nb\n"), 3*KeepBuffer)
	for _, want := range []int{2 * KeepBuffer, 1} {
		if text, err := r.Next(); err != nil || len(text) != want {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
	}
	if kept := cap(r.long); kept > KeepBuffer {
		t.Errorf("%d bytes held", kept)
	}
}

// A byte order mark is removed from the first line of the stream, and from no other. It
// does not count towards the length of the line.
func TestTheMarkIsOfTheFirstLine(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	long := strings.Repeat("a", 2*ReadBuffer-len(mark)) // its white space is a read of its own
	for first, in := range map[string]*Reader{
		long:       New(strings.NewReader(mark+long+"\r\n"+mark+"b\n"), len(long)),
		mark + "a": New(strings.NewReader(mark+"a\n"+mark+"b\n"), 10),
	} {
		if first != long {
			in.After(6) // a section
		}
		for _, want := range []string{first, mark + "b"} {
			if text, err := in.Next(); err != nil || string(text) != want {
				t.Errorf("%d bytes %.10q, %v; want %.10q", len(text), text, err, want)
			}
		}
	}
}

// A clipped text ends with a whole character.
func TestClip(t *testing.T) {
	for n := range 3 {
		text := strings.Repeat("a", n) + strings.Repeat("€", 2*clippedBytes)
		if got := Clip(text); !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) || len(got) > clippedBytes+len("…") || len(got) < clippedBytes-2 {
			t.Errorf("%q", got)
		}
	}
	if got := Clip("short"); got != "short" {
		t.Error(got)
	}
}

// A set of lines has those that were added, and no neighbour of theirs.
func TestLineSet(t *testing.T) {
	var s Set
	for _, line := range []int{1, 63, 64, 1000} {
		s.Add(line)
	}
	for line, want := range map[int]bool{0: false, 1: true, 2: false, 62: false, 63: true, 64: true, 65: false, 999: false, 1000: true, 1 << 20: false} {
		if s.Has(line) != want {
			t.Errorf("line %d: not %t", line, want)
		}
	}
}
