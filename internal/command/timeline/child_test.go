package timeline

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/observe"
)

// mostInASecond is the most items that a child answers between two samples.
const mostInASecond = 9

// child answers items as quickly as the disk takes their lines: some, and then the sample of
// the second in which they were. It ends when it is killed.
func child(path string) {
	out, err := os.OpenFile(outputOf(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		panic(err)
	}
	answered := 0
	w, err := Open(Config{Path: path, At: noon, Progress: func() *event.Progress { return aProgress(0) }})
	if err != nil {
		panic(err)
	}
	chance := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))
	for n := 1; ; n++ {
		s := aSample(n, chance)
		s.Answered = chance.IntN(mostInASecond + 1)
		for range s.Answered {
			answered++
			if _, err := out.WriteString("an answer\n"); err != nil {
				panic(err)
			}
		}
		w.Sample(s)
		for len(w.samples) > 0 { // the next second comes when this one is written
			time.Sleep(50 * time.Microsecond)
		}
	}
}

func outputOf(path string) string { return filepath.Join(filepath.Dir(path), "results.jsonl") }

// However often a run is killed and gone on with, its timeline can be read, and holds what
// was answered but for the second in which it was killed, and the one that was on its way.
func TestKilledAndResumed(t *testing.T) {
	kills := 20
	if text := os.Getenv("TIMELINE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		kills = n
	}
	path, chance, worst, most := tempPath(t), newChance(1), 0, int64(0)
	for n := 1; n <= kills; n++ {
		kill(t, path, time.Duration(chance.IntN(150_000))*time.Microsecond)
		out, err := os.ReadFile(outputOf(path))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		lost := bytes.Count(out, []byte("\n")) - answeredAfter(t, text)
		if lost < 0 || lost > n*2*mostInASecond {
			t.Fatalf("kill %d: %d are in the output and not in the timeline", n, lost)
		}
		if v, err := (&Reader{Path: path}).Read(); err != nil || v.Progress == nil && endsInPicture(text) {
			t.Fatalf("kill %d: %v, %+v: %q", n, err, v, text[max(0, len(text)-200):])
		}
		worst, most = max(worst, lost), max(most, int64(len(text)))
	}
	t.Logf("%d kills: %d items at most missing, %d bytes at most", kills, worst, most)
	if most > maxBytes {
		t.Errorf("%d bytes", most)
	}
}

// endsInPicture reports whether the last line is whole and says how the run stands. A kill may
// come within that line's write, or when a run that goes on has cut the old one off and not
// written its own: then a sample is the last.
func endsInPicture(text []byte) bool {
	whole, is := bytes.CutSuffix(text, []byte("\n"))
	return is && bytes.Contains(whole[bytes.LastIndexByte(whole, '\n')+1:], []byte(`"event":"progress"`))
}

// kill runs a child for so long.
func kill(t *testing.T, path string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	var end *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &end) || end.ExitCode() != -1 {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
}

var _ = observe.Sample{}
