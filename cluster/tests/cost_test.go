//go:build linux

package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Prices of the tests' model, in USD per million tokens, and the bound on its answers.
const (
	inputPrice, outputPrice = 4, 20
	answerTokens            = 40
)

// A cap holds over three workers with 66 calls in flight, also when a worker is killed: the provider bills no more than the cap, and
// nearly all of it. A raise is good for as much more. An unknown price is refused before anything is called.
func TestAJobKeepsToItsCap(t *testing.T) {
	t.Parallel()
	const items = 8000
	for name, strike := range map[string]func(*fleet) *worker{
		"undisturbed": nil,
		"a worker":    func(f *fleet) *worker { return f.other(f.keeper()) },
		"the keeper":  func(f *fleet) *worker { return f.keeper() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{workers: 3, inFlight: 22, provider: sim.Config{Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.4}}})
			path, output := filepath.Join(f.dir, "in.jsonl"), filepath.Join(f.dir, "out.jsonl")
			var lines []byte
			for i := range items {
				lines = fmt.Appendf(lines, "{\"prompt\":\"question %d\",\"model\":\"m\",\"max_tokens\":%d}\n", i, answerTokens)
			}
			if err := os.WriteFile(path, lines, 0o600); err != nil {
				t.Fatal(err)
			}
			submit := func(n int, flags ...string) *process {
				p := f.process(fmt.Sprint("submit", n), append([]string{
					"submit", path, "-o", output, "--cluster", f.url(), "--base-url", f.judge.base("customer"), "--chunk-lines", "100", "--wait",
				}, flags...)...)
				p.start()
				return p
			}
			priced := fmt.Sprintf("--price=%d,%d", inputPrice, outputPrice)
			customer := submit(1, "--max-cost", "1", priced)
			if strike != nil {
				<-f.judge.after(500)
				w := strike(f)
				w.struck = true
				w.kill()
			}
			if code := f.finishes(customer); code != 4 || !strings.Contains(string(customer.lastWords()), "--max-cost") {
				t.Errorf("exit %d, want 4, and what is said is\n%s", code, customer.lastWords())
			}
			f.billed(0.97, 1)
			job := f.jobOf(customer)
			if text, code := f.run("jobs", "status", job, "--cluster", f.url()); code != 0 || !strings.Contains(text, "stopped") || !strings.Contains(text, "--max-cost") {
				t.Errorf("jobs status: exit %d: %s", code, text)
			}
			if text, code := f.run("jobs", "resume", job, "--cluster", f.url(), "--max-cost", "0.9"); code != 2 {
				t.Errorf("jobs resume with less: exit %d: %s", code, text)
			}
			if text, code := f.run("jobs", "resume", job, "--cluster", f.url(), "--max-cost", "1.2"); code != 0 {
				t.Fatalf("jobs resume: exit %d: %s", code, text)
			}
			if code := f.finishes(submit(2, "--max-cost", "1", priced)); code != 4 {
				t.Errorf("exit %d, want 4", code)
			}
			f.billed(1.16, 1.2)
			calls := f.judge.asked()
			if code := f.finishes(submit(3, "--max-cost", "1", "--model", "m", "--limit", "10")); code != 2 {
				t.Errorf("a price that is not known: exit %d, want 2", code)
			}
			if code := f.finishes(submit(4, "--max-cost", "1", "--limit", "10")); code != 2 {
				t.Errorf("a price that is not known of a line's model: exit %d, want 2", code)
			}
			if n := f.judge.asked() - calls; n != 0 {
				t.Errorf("%d calls without a price", n)
			}
		})
	}
}

// other is a worker that is not w.
func (f *fleet) other(w *worker) *worker {
	for _, o := range f.workers {
		if o != w {
			return o
		}
	}
	return nil
}

// billed fails the test unless the provider has billed so much, by what it wrote of each answer.
func (f *fleet) billed(least, most float64) {
	f.t.Helper()
	sum, calls := 0.0, 0
	for _, c := range settled(f.t, f.judge) {
		sum += float64(c.input*inputPrice+c.output*outputPrice) / 1e6
		calls++
	}
	f.t.Logf("$%.4f for %d calls", sum, calls)
	if sum < least || sum > most {
		f.t.Errorf("the provider has billed $%.4f, want %g to %g", sum, least, most)
	}
}

// usageOf reads the tokens that an answer says it took.
func usageOf(answer []byte) (input, output int) {
	var a struct {
		Usage struct {
			Input  int `json:"prompt_tokens"`
			Output int `json:"completion_tokens"`
		}
	}
	_ = json.Unmarshal(answer, &a) // a refusal has none
	return a.Usage.Input, a.Usage.Output
}
