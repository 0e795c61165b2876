package timeline

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// A sample comes back as it was written.
func TestSampleComesBack(t *testing.T) {
	chance := newChance(1)
	for n := range 500 {
		s := aSample(n, chance)
		got, err := decodeSample(encodeSample(&s))
		if err != nil || !reflect.DeepEqual(*got, s) {
			t.Fatalf("%v\n%+v\n%+v", err, got, s)
		}
	}
}

// After a simulated week the file has at most so many samples and bytes, each sample of
// about four minutes, and no count is lost.
func TestWeek(t *testing.T) {
	path, chance := tempPath(t), newChance(2)
	f := begun(t, path)
	const week = 7 * 24 * 3600
	every := 300 / race.Fewer(10) // each thirtieth second will do: samples soon span more
	var longest int64
	answered := 0
	s := aSample(0, chance)
	s.Span = float64(every)
	for n := every; n <= week; n += every {
		s.At, s.Elapsed = s.At.Add(time.Duration(every)*time.Second), float64(n)
		s.Answered = n % 37
		answered += s.Answered
		must(t, f.add(s, news(answered)))
		if n%1000 == 0 {
			info, err := os.Stat(path)
			must(t, err)
			longest = max(longest, info.Size())
		}
	}
	all := samplesIn(t, path)
	if longest > maxBytes || len(all) > maxSamples || len(all) < maxSamples/4 || answeredIn(all) != answered {
		t.Errorf("%d bytes, %d samples, %d answered of %d", longest, len(all), answeredIn(all), answered)
	}
	for i, s := range all[1 : len(all)-1] {
		if s.Span < 128 || s.Span > 512*spanTolerance {
			t.Errorf("sample %d spans %v s", i, s.Span)
		}
	}
	t.Logf("%d bytes at most, %d samples of %.0f s", longest, len(all), all[1].Span)
}

// Six hours, with the lanes of a usual run, end at eight seconds a sample.
func TestSixHours(t *testing.T) {
	path, chance := tempPath(t), newChance(3)
	f := begun(t, path)
	s := aSample(0, chance)
	s.Lanes = s.Lanes[:1]
	for n := 1; n <= 6*3600; n++ {
		s.At, s.Elapsed = s.At.Add(time.Second), float64(n)
		must(t, f.add(s, news(n)))
	}
	if all := samplesIn(t, path); f.span != 8 || all[0].Span != 8 || all[len(all)-1].At != s.At {
		t.Errorf("%d s, the first of %v s, the last at %v", f.span, all[0].Span, all[len(all)-1].At)
	}
}

// A file that is full goes on with samples of twice the length, also where the samples of its
// runs are of an odd number, or some came late.
func TestFullFileHalves(t *testing.T) {
	path, chance := tempPath(t), newChance(4)
	f := begun(t, path)
	s := aSample(0, chance)
	s.Lanes = nil
	for n := 1; n <= maxSamples; n++ {
		if n == 1001 || n == 1302 {
			must(t, f.settleSample())
			h, err := newHead(nil, "", 1)
			must(t, err)
			must(t, f.start(h, news(n)))
		}
		s.Span = 1
		if n%100 == 0 {
			s.Span = 1.6
		}
		must(t, f.add(s, news(n)))
	}
	if all := samplesIn(t, path); f.span != 2 || len(all) > maxSamples*2/3 {
		t.Errorf("%d samples of %d s", len(all), f.span)
	}
}

// However spans and runs fall, the bounds hold, counts add up, and samples of two runs do
// not merge while each has its own.
func TestBoundsHoldWhateverComes(t *testing.T) {
	for seed := range uint64(2) {
		path, chance := tempPath(t), newChance(seed)
		answered, n := 0, 0
		for range 5 + 100*int(seed%2) {
			f := begun(t, path)
			for range chance.IntN([]int{2000, 10}[seed%2]) {
				n++
				s := aSample(n, chance)
				s.Span = []float64{1, 1, 1, 0.98, 1.02, 0.3, 7, 5000}[chance.IntN(8)]
				answered += s.Answered
				must(t, f.add(s, news(answered)))
				if chance.IntN(50) == 0 {
					must(t, f.append(encodeFailures([]observe.Failure{{Message: strings.Repeat("x", chance.IntN(300))}}, s.At), news(answered)))
				}
			}
			if chance.IntN(2) == 0 {
				must(t, f.append([]byte(`{"event":"summary","exit_code":0}`+"\n"), news(answered)))
			}
			must(t, f.close())
		}
		text, err := os.ReadFile(path)
		must(t, err)
		holds, err := scan(bytes.NewReader(text))
		must(t, err)
		if got := answeredIn(samplesIn(t, path)); got != answered || holds.starts > maxStarts || holds.samples > maxSamples || len(text) > maxBytes {
			t.Errorf("seed %d: %+v, %d bytes, %d answered of %d", seed, holds, len(text), got, answered)
		}
	}
}

// More runs than the bound merge from the oldest on, and are still counted.
func TestOlderRunsMerge(t *testing.T) {
	path, chance := tempPath(t), newChance(4)
	answered := 0
	const runs = maxStarts + 17
	for n := range runs {
		f := begun(t, path)
		s := aSample(n, chance)
		answered += s.Answered
		must(t, f.add(s, news(answered)))
		must(t, f.append([]byte(`{"event":"summary","exit_code":0}`+"\n"), news(answered)))
		must(t, f.close())
	}
	text, err := os.ReadFile(path)
	must(t, err)
	var counted, lines, sums int
	for line := range bytes.Lines(text) {
		switch p := parse(bytes.TrimSuffix(line, []byte("\n"))); p.kind {
		case start:
			counted, lines = counted+p.head.runs, lines+1
		case summary:
			sums++
		}
	}
	if counted != runs || lines != maxStarts || sums != maxStarts || answeredIn(samplesIn(t, path)) != answered {
		t.Errorf("%d runs in %d lines, %d summaries", counted, lines, sums)
	}
}

// The progress is the last line each second, and the file never gets shorter by it.
func TestProgressIsLast(t *testing.T) {
	path, chance := tempPath(t), newChance(5)
	f := begun(t, path)
	f.span = 4
	size := int64(0)
	for n := 1; n < 100; n++ {
		line := news(n)
		if n%3 == 0 {
			line = append(bytes.TrimSuffix(line, []byte("}\n")), `,"latest":"`+strings.Repeat("x", chance.IntN(2000))+"\"}\n"...)
		}
		must(t, f.add(aSample(n, chance), line))
		samplesIn(t, path)
		info, err := os.Stat(path)
		must(t, err)
		if info.Size() < size {
			t.Errorf("it was %d bytes and is %d", size, info.Size())
		}
		size = info.Size()
		v, err := (&Reader{Path: path}).Read()
		if err != nil || v.Progress.Done != n {
			t.Fatalf("%v, %+v", err, v.Progress)
		}
	}
}

// What a killed process left at the end is cut off, wherever its write stopped: the end is
// new up to there, and then the old one, or nothing where the file was longer by it. Unless
// that was within the line of a sample, all that was counted is there.
func TestKilledWithinAWrite(t *testing.T) {
	path, chance := tempPath(t), newChance(6)
	f := begun(t, path)
	f.span = 3
	answered := 0
	for n := 1; n < 9; n++ {
		before, err := os.ReadFile(path)
		must(t, err)
		had, sound, s := answered, f.sound, aSample(n, chance)
		answered += s.Answered
		must(t, f.add(s, append(bytes.TrimSuffix(news(n), []byte("}\n")), `,"latest":"`+strings.Repeat("x", chance.IntN(100))+"\"}\n"...)))
		after, err := os.ReadFile(path)
		must(t, err)
		for at := 0; at < len(after); at += 10 / race.Fewer(10) { // each tenth byte under the detector
			if line := bytes.LastIndexByte(after[:at], '\n') + 1; at < len(before) && int64(line) > sound && at-line < len(beginnings[failures]) {
				continue // such a line has nothing by which it could be known: it is left alone
			}
			left := append([]byte(nil), after[:at]...)
			if at < len(before) {
				left = append(left, before[at:]...)
			}
			n := answeredAfter(t, left)
			grown := sound + int64(bytes.IndexByte(after[sound:], '\n'))
			if inside := int64(at) > sound && int64(at) <= grown; !inside && n != had && n != answered {
				t.Fatalf("%d answered, neither %d nor %d:\n%s", n, had, answered, left)
			}
		}
	}
}

// answeredAfter returns the answers that the next run finds in a file that a killed process
// left.
func answeredAfter(t *testing.T, left []byte) (n int) {
	t.Helper()
	holds, err := scan(bytes.NewReader(left))
	if err != nil {
		t.Fatalf("%v:\n%s", err, left)
	}
	for line := range bytes.Lines(left[:holds.sound]) {
		if s, err := decodeSample(line); err == nil {
			n += s.Answered
		}
	}
	return n
}

// What is not ours, or is another version's, is refused and stays as it is.
func TestFilesOfOthers(t *testing.T) {
	path := tempPath(t)
	f := begun(t, path)
	must(t, f.add(aSample(1, newChance(7)), news(1)))
	must(t, f.close())
	ours, err := os.ReadFile(path)
	must(t, err)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"a note":               {"mine\n", ErrNotOurs},
		"a note without end":   {"mine", ErrNotOurs},
		"a blank line":         {"\n", ErrNotOurs},
		"an opening":           {"{", ErrNotOurs},
		"progress of a run":    {`{"event":"start","format":"1.0"}` + "\n", ErrNotOurs},
		"results":              {`{"id":"x","custom_id":"a"}` + "\n", ErrNotOurs},
		"zeros":                {strings.Repeat("\x00", 100), ErrNotOurs},
		"another version":      {strings.Replace(string(ours), `timeline":1`, `timeline":2`, 1), errOtherVersion},
		"a note behind":        {string(ours) + "mine\n", ErrDamaged},
		"a note behind, open":  {string(ours) + "mine", ErrDamaged},
		"a blank line behind":  {string(ours) + "\n", ErrDamaged},
		"a line of another":    {string(ours) + `{"event":"changed"}` + "\n", ErrDamaged},
		"twice":                {string(ours) + string(ours), ErrDamaged},
		"a note between":       {strings.Replace(string(ours), `{"event":"sample"`, "mine\n"+`{"event":"sample"`, 1), ErrDamaged},
		"a sample that is bad": {strings.Replace(string(ours), `"span_s":1,"answered"`, `"span_s":-1,"answered"`, 1) + string(ours), ErrDamaged},
	} {
		must(t, os.WriteFile(path, []byte(c.text), 0o600))
		if f, err := openFile(path); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = f.close()
			}
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != c.text {
			t.Errorf("%s: it was changed: %q", name, text)
		}
	}
}

// A loss of power leaves zeros: they are cut off.
func TestZerosAreCutOff(t *testing.T) {
	path := tempPath(t)
	f := begun(t, path)
	must(t, f.add(aSample(1, newChance(8)), news(1)))
	must(t, f.close())
	for _, lost := range []int{0, 10, 700} {
		ours, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, append(ours[:len(ours)-lost], make([]byte, 1<<20)...), 0o600))
		f, err := openFile(path)
		if err != nil {
			t.Fatal(lost, err)
		}
		must(t, f.rewriteTail(news(1)))
		must(t, f.close())
		samplesIn(t, path)
	}
}

// A link, a folder, a pipe, a file that another run writes to: none is written to.
func TestNoFileOfOurs(t *testing.T) {
	path := tempPath(t)
	begun(t, path)
	if _, err := openFile(path); !errors.Is(err, ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	link := path + ".link"
	must(t, os.Symlink(path, link))
	if _, err := openFile(link); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a link: %v", err)
	}
	if _, err := openFile(t.TempDir()); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := openFile(path + "/none/x"); err == nil {
		t.Error("a folder that is not there")
	}
}

// A file that has come in the place of ours is not replaced when ours is full, nor is one
// that bears the name of what would be written.
func TestAnotherInItsPlace(t *testing.T) {
	path := tempPath(t)
	f := begun(t, path)
	must(t, f.add(aSample(1, newChance(9)), news(1)))
	must(t, os.WriteFile(path+disk.NextSuffix, []byte("mine"), 0o600))
	if err := f.rewrite(2); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("in the way: %v", err)
	}
	must(t, os.Remove(path+disk.NextSuffix))
	must(t, os.WriteFile(path+disk.NextSuffix, []byte(mark+`1,"sp`), 0o600))
	must(t, f.rewrite(2))
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	if err := f.rewrite(4); err == nil {
		t.Error("another's file was replaced")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// The time of a bound that this version does not know stays in its sample, under the word for all of them.
func TestBoundOfALaterVersionKeepsItsTime(t *testing.T) {
	line := `{"event":"sample","at":"2026-01-01T00:00:01.000Z","elapsed_s":1,"span_s":1,"bound_s":{"moon_phase":0.25,"output":0.25,"tokens":0.5}}`
	s, err := decodeSample([]byte(line))
	if err != nil || s.Bounds.Sum() != time.Second || s.Bounds[limiter.BoundOutput] != time.Second/4 || s.Bounds[limiter.BoundTokens] != time.Second/2 {
		t.Fatal(s, err)
	}
	if text := string(encodeSample(s)); !strings.Contains(text, `"bound_s":{"other":0.25,"output":0.25,"tokens":0.5}`) {
		t.Error(text)
	}
}
