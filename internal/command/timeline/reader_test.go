package timeline

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// A reader that follows a run sees each second of it, also while the file is written again,
// and its end. It also sees a run that goes on with the file.
func TestReaderFollows(t *testing.T) {
	path, chance := tempPath(t), newChance(1)
	r := Reader{Path: path}
	if _, err := r.Read(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	f := begun(t, path)
	if v, err := r.Read(); err != nil || v.Ended || v.Progress == nil || !v.At.IsZero() {
		t.Errorf("%v, %+v", err, v)
	}
	answered := 0
	for n := 1; n <= 2*maxSamples; n++ {
		s := aSample(n, chance)
		answered += s.Answered
		must(t, f.add(s, news(n)))
		if n%97 != 0 && n%maxSamples > 3 {
			continue
		}
		v, err := r.Read()
		if err != nil || v.Progress.Done != n || !v.At.Equal(s.At) || v.Ended || answeredIn(r.now.samples) != answered {
			t.Fatalf("%v, %+v, %+v", err, v, v.Progress)
		}
	}
	must(t, f.append([]byte(`{"event":"summary","exit_code":0}`+"\n"), news(answered)))
	if v, err := r.Read(); err != nil || !v.Ended || v.Progress.Done != answered || strings.HasSuffix(string(v.Line), " ") {
		t.Errorf("%v, %+v", err, v)
	}
	must(t, f.close())
	begun(t, path)
	if v, err := r.Read(); err != nil || v.Ended || v.Progress == nil || len(r.now.samples) > 0 {
		t.Errorf("%v, %+v", err, v)
	}
}

// A last line that is just being written leaves what was there before.
func TestReaderMeetsATornLine(t *testing.T) {
	path, chance := tempPath(t), newChance(2)
	f := begun(t, path)
	must(t, f.add(aSample(1, chance), news(1)))
	r := Reader{Path: path}
	_, err := r.Read()
	must(t, err)
	must(t, f.add(aSample(2, chance), news(2)))
	text, err := os.ReadFile(path)
	must(t, err)
	for at := len(text) - 1; at > int(f.sound); at -= 7 {
		must(t, os.WriteFile(path, text[:at], 0o600))
		if v, err := r.Read(); err != nil || v.Progress == nil || v.Progress.Done != 1 {
			t.Fatalf("%v, %+v", err, v.Progress)
		}
	}
	must(t, os.WriteFile(path, text, 0o600))
	if v, err := r.Read(); err != nil || v.Progress.Done != 2 {
		t.Errorf("%v, %+v", err, v.Progress)
	}
}

// Of a file of somebody else's nothing is shown.
func TestReaderRefuses(t *testing.T) {
	path := tempPath(t)
	must(t, os.WriteFile(path, []byte(`{"event":"progress","done":1}`+"\n"), 0o600))
	for _, of := range []string{path, t.TempDir()} {
		if v, err := (&Reader{Path: of}).Read(); err == nil || v.Progress != nil {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// What is read of whatever file never claims what is another's: what stays are lines of
// ours from the first on, and what is cut off is the end of one.
func FuzzScan(f *testing.F) {
	s := aSample(1, newChance(1))
	h := head{1, 1, []byte(`"run":"a"}`)}
	whole := string(h.line()) + "\n" + string(encodeSample(&s)) + `{"event":"failures","failures":[]}` + "\n" + `{"event":"summary"}` + "\n"
	f.Add([]byte(whole + string(news(1))))
	f.Add([]byte(whole + string(news(1))[:100]))
	f.Add([]byte(whole + "mine\n"))
	f.Add([]byte(`{"event":"start","headrace_timeline":2,` + "\n"))
	f.Add([]byte("mine"))
	f.Fuzz(func(t *testing.T, text []byte) { checkScan(t, text) })
}

// A file that was cut off under its reader is read anew.
func TestReaderOfAShorterFile(t *testing.T) {
	path, chance := tempPath(t), newChance(7)
	f := begun(t, path)
	begin, err := os.ReadFile(path)
	must(t, err)
	r := Reader{Path: path}
	for n := range 20 {
		s := aSample(n, chance)
		must(t, f.add(s, news(n+1)))
	}
	if v, err := r.Read(); err != nil || v.Progress == nil || v.Progress.Done != 20 {
		t.Fatalf("%v, %+v", err, v)
	}
	must(t, f.close())
	must(t, os.WriteFile(path, begin, 0o600))
	if v, err := r.Read(); err != nil || v.Progress == nil || v.Progress.Done != 0 || !v.At.IsZero() {
		t.Errorf("%v, %+v", err, v.Progress)
	}
}

// A timeline that a run writes is not put aside, nor is what is none; what nobody writes is.
func TestPutAside(t *testing.T) {
	path := tempPath(t)
	if kept, err := PutAside(path); kept != "" || err != nil {
		t.Errorf("nothing is there: %q, %v", kept, err)
	}
	f := begun(t, path)
	if _, err := PutAside(path); !errors.Is(err, ErrInUse) {
		t.Errorf("of a run: %v", err)
	}
	must(t, f.close())
	kept, err := PutAside(path)
	if _, gone := os.Stat(path); err != nil || kept == "" || !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("%q, %v, %v", kept, err, gone)
	}
	must(t, os.WriteFile(path, []byte("mine\n"), 0o600))
	if _, err := PutAside(path); !errors.Is(err, ErrNotOurs) {
		t.Errorf("somebody else's: %v", err)
	}
}
