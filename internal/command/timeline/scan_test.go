package timeline

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func checkScan(t *testing.T, text []byte) {
	t.Helper()
	holds, err := scan(bytes.NewReader(text))
	path := tempPath(t)
	must(t, os.WriteFile(path, text, 0o600))
	v, readErr := (&Reader{Path: path}).Read()
	if err != nil {
		f, err := openFile(path)
		if err == nil {
			_ = f.close()
			t.Fatal("a file that is refused was opened")
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, text) {
			t.Fatal("a file that is refused was changed")
		}
		return
	}
	if len(text) > 0 && !strings.HasPrefix(string(text), mark) {
		t.Fatalf("it was taken for ours: %q", text)
	}
	if holds.sound > 0 && readErr != nil {
		t.Fatalf("it can be gone on with, and not be read: %v, %+v", readErr, v)
	}
	lines, sound := 0, text[:holds.sound]
	for line := range bytes.Lines(sound) {
		if lines++; parse(bytes.TrimSuffix(line, []byte("\n"))).kind == unknown {
			t.Fatalf("a line that is none: %q", line)
		}
	}
	rest := bytes.TrimRight(text[holds.sound:], "\x00")
	if lines != holds.lines || bytes.Count(rest, []byte("\n")) > 2 || len(rest) > 0 && rest[0] != '{' {
		t.Fatalf("cut off: %q", rest)
	}
	if holds.starts == 0 {
		return
	}
	if _, anew, err := condense(bytes.NewReader(sound), holds, 2*min(holds.span, maxSpan/2)); err != nil {
		t.Fatal(err)
	} else if again, err := scan(bytes.NewReader(anew)); err != nil || again.sound != int64(len(anew)) {
		t.Fatalf("written anew it is none of ours: %v, %q", err, anew)
	}
}

// A file of ours with a few bytes changed, taken out or put in is one of ours, or is left
// alone.
func TestScanOfWhatWasSpoilt(t *testing.T) {
	chance := newChance(1)
	s := aSample(1, chance)
	h := head{1, 1, []byte(`"run":"a"}`)}
	whole := append(append(h.line(), '\n'), encodeSample(&s)...)
	whole = append(append(whole, encodeSample(&s)...), news(1)...)
	for range 1500 {
		text := bytes.Clone(whole)
		for range 1 + chance.IntN(3) {
			at := chance.IntN(len(text))
			switch chance.IntN(4) {
			case 0:
				text[at] = byte(chance.IntN(256))
			case 1:
				text = append(text[:at], text[min(len(text), at+chance.IntN(50)):]...)
			case 2:
				text = append(text[:at:at], append([]byte("mine\n"), text[at:]...)...)
			default:
				text = text[:at+1]
			}
		}
		checkScan(t, text)
	}
}
