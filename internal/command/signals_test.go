//go:build unix

package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// The first Ctrl-C, or SIGTERM, drains: what is in flight is finished and saved,
// nothing new starts, and the last line resumes.
func TestFirstSignalDrains(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			server, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 100 * time.Millisecond}})
			out := filepath.Join(t.TempDir(), "out file.jsonl")
			args := []string{promptsFile(t, 2000), "-o", out, "--base-url", base, "--model", "m", "-c", "4"}
			p := start(t, nil, args...)
			p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
			p.signal(sig)
			p.until(stopping)
			code, sum := p.end()
			if code != exit.Interrupted || !sum.Proved || sum.NotRun == 0 {
				t.Errorf("exit code %d, %+v, last line %q", code, sum, p.last)
			}
			if want := "headrace run --progress json " + strings.Replace(strings.Join(args, " "), out, "'"+out+"'", 1); p.last != want {
				t.Errorf("the last line is %q, want %q", p.last, want)
			}
			if n, b := wholeLines(t, out), server.Books(); n != b.Accepted || b.Abandoned != 0 || n == 0 {
				t.Errorf("%d lines, and the provider answered %d and was left waiting by %d", n, b.Accepted, b.Abandoned)
			}
		})
	}
}

// The second abandons what is in flight: it ends though no call ever would, and
// the files are whole.
func TestSecondSignalAbandons(t *testing.T) {
	for _, pair := range [][2]os.Signal{{os.Interrupt, os.Interrupt}, {syscall.SIGTERM, os.Interrupt}} {
		server, base := serveFor(t, sim.Config{Errors: sim.Rates{Hang: 1}})
		out := filepath.Join(t.TempDir(), "out.jsonl")
		p := start(t, nil, promptsFile(t, 50), "-o", out, "--base-url", base, "--model", "m", "-c", "4")
		p.until(func(e shownEvent) bool { return e.Event == "progress" && e.InFlight == 4 })
		p.signal(pair[0])
		p.until(stopping)
		p.signal(pair[1])
		code, sum := p.end()
		if code != exit.Interrupted || !sum.Proved || !strings.HasPrefix(p.last, "headrace run ") {
			t.Errorf("exit code %d, %+v, last line %q", code, sum, p.last)
		}
		if n := wholeLines(t, out); n != 0 || server.Books().Accepted != 0 {
			t.Errorf("%d lines", n)
		}
	}
}

// What a second Ctrl-C leaves of a run in the order of the input is brought into that order
// by the run that goes on, though the first item comes last.
func TestInputOrderAfterSecondSignal(t *testing.T) {
	blocked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("prompt 1.")) {
			select {
			case blocked <- struct{}{}: // the first time it is never answered
				<-r.Context().Done()
				return
			default:
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	var text strings.Builder
	for n := 1; n <= 50; n++ {
		fmt.Fprintf(&text, `{"prompt":"prompt %d."}`+"\n", n)
	}
	must.Do(t, os.WriteFile(in, []byte(text.String()), 0o600))
	args := []string{in, "-o", out, "--base-url", server.URL, "--model", "m", "-c", "4", "--order", "input"}
	p := start(t, nil, args...)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 5 })
	p.signal(os.Interrupt)
	p.until(stopping)
	p.signal(os.Interrupt)
	if code, _ := p.end(); code != exit.Interrupted || wholeLines(t, out) < 5 {
		t.Errorf("exit code %d, last line %q", code, p.last)
	}
	p = start(t, nil, args...)
	p.until(func(e shownEvent) bool { return strings.Contains(e.Message, "now in the order of the input") })
	if code, _ := p.end(); code != exit.OK {
		t.Errorf("exit code %d, last line %q", code, p.last)
	}
	lines := must.Get(os.ReadFile(out))(t)
	n := 0
	for line := range bytes.Lines(lines) {
		if n++; !bytes.Contains(line, fmt.Appendf(nil, `"headrace":{"line":%d,`, n)) {
			t.Fatalf("line %d of the output is another's: %s", n, line)
		}
	}
	if n != 50 {
		t.Errorf("%d lines", n)
	}
}

// A run that waits for standard input, which says nothing, ends all the same.
func TestSignalWhileStandardInputStalls(t *testing.T) {
	server, base := serveFor(t, sim.Config{})
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	defer in.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, in, "-", "-o", out, "--base-url", base, "--model", "m")
	must.Get(typed.WriteString(`{"prompt":"one"}` + "\n" + `{"prompt":"tw`))(t)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done == 1 })
	p.signal(os.Interrupt)
	code, sum := p.end()
	if code != exit.Interrupted || !sum.Proved || wholeLines(t, out) != 1 || server.Books().Received != 1 {
		t.Errorf("exit code %d, %+v, last line %q", code, sum, p.last)
	}
}

// A provider that serves no more ends a run whose standard input says nothing.
func TestStoppedWhileStandardInputStalls(t *testing.T) {
	_, base := serveFor(t, sim.Config{Keys: []string{"another"}})
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	defer in.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, in, "-", "-o", out, "--base-url", base, "--model", "m")
	must.Get(typed.WriteString(`{"prompt":"one"}` + "\n"))(t)
	code, _ := p.end()
	if code != exit.Stopped || wholeLines(t, out) != 0 {
		t.Errorf("exit code %d, last line %q", code, p.last)
	}
}

// A result is handed on as soon as it is there, whatever else is to come.
func TestResultsComeAtOnce(t *testing.T) {
	_, base := serveFor(t, sim.Config{})
	cmd := exec.Command("headrace", "run", "-", "-o", "-", "--base-url", base, "--model", "m", "--progress", "none")
	typed := must.Get(cmd.StdinPipe())(t)
	results := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(results)
	for range 3 {
		must.Get(io.WriteString(typed, `{"prompt":"and now?"}`+"\n"))(t)
		if line, err := lines.ReadString('\n'); err != nil || !json.Valid([]byte(line)) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_ = typed.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// headrace sim says where it listens on one line, serves, and prints its books when
// it is interrupted.
func TestSimServesUntilInterrupted(t *testing.T) {
	p, base := childSim(t)
	run := exec.Command("headrace", "run", promptsFile(t, 30), "-o", filepath.Join(t.TempDir(), "o"), "--base-url", base, "--model", "m")
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	p.signal(os.Interrupt)
	var books []string
	for _, ok := p.next(); ok; _, ok = p.next() {
		books = append(books, p.last)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(books, func(l string) bool { return strings.HasPrefix(l, "accepted") && strings.HasSuffix(l, " 30") }) {
		t.Errorf("its books: %q", books)
	}
}

// A run that is killed, and gone on with, has cost what its lines say together, and that is
// what status says.
func TestCostsOfAKilledRun(t *testing.T) {
	_, base := childSim(t, "--latency", "50ms")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{promptsFile(t, 300), "-o", out, "--base-url", base, "--model", "m", "-c", "4", "--price", "2.5,10"}
	for n := range 3 {
		p := start(t, nil, args...)
		p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 40*n })
		must.Do(t, p.cmd.Process.Kill())
		p.end()
	}
	p := start(t, nil, args...)
	if code, sum := p.end(); code != exit.OK || !sum.Proved {
		t.Errorf("exit code %d, %+v, last line %q", code, sum, p.last)
	}
	text := must.Get(os.ReadFile(out))(t)
	sum, priced, unpriced, fault := linesCost(text, "2.5,10")
	if fault != "" || priced != 300 || unpriced != 0 || sum < 0.01 {
		t.Fatalf("%v in %d lines, and %d without a cost: %s", sum, priced, unpriced, fault)
	}
	if _, said, _ := inWorld(t, nil, nil, "status", out); !strings.Contains(said, " calls; "+words.Money(sum)+"\n") {
		t.Errorf("not %s in %s", words.Money(sum), said)
	}
}
