package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job stops at the bounds of its user, with 4 and the command that goes on, whether or not who submitted it is there; it
// makes no further call, and goes on when it is resumed.
func TestAJobStopsAtItsBounds(t *testing.T) {
	t.Parallel()
	const items = 1500
	for name, c := range map[string]struct{ flags, says string }{
		"deadline": {"--deadline 5s", "its deadline (--deadline) was reached"},
		"failures": {"--max-failures 5", "items have failed, and --max-failures is 5"},
		"share":    {"--max-failures 5%", "items have failed, and --max-failures is 5%"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{workers: 2, inFlight: 4, provider: slow})
			path, output := filepath.Join(f.dir, "in.jsonl"), filepath.Join(f.dir, "out.jsonl")
			var lines []byte
			for i := range items {
				if bad := i%10 == 9; bad {
					lines = fmt.Appendf(lines, "{\"prompt\":\"refused %d\",\"model\":\"m\",\"max_tokens\":0.5}\n", i)
				} else {
					lines = fmt.Appendf(lines, "{\"prompt\":\"question %d\",\"model\":\"m\"}\n", i)
				}
			}
			if err := os.WriteFile(path, lines, 0o600); err != nil {
				t.Fatal(err)
			}
			typed := func(n int, flags ...string) *process {
				p := f.process(fmt.Sprint("submit", n), append([]string{
					"submit", path, "-o", output, "--cluster", f.url(), "--base-url", f.judge.base("customer"), "--chunk-lines", "20",
				}, flags...)...)
				p.start()
				return p
			}
			first := typed(1, strings.Fields(c.flags)...)
			if code := first.ends(comeUp); code != 0 {
				t.Fatalf("exit %d", code)
			}
			job := f.jobOf(first)
			f.run("jobs", "watch", job, "--cluster", f.url())
			second := typed(2, "--wait")
			if code := f.finishes(second); code != 4 || !strings.Contains(string(second.lastWords()), c.says) || !strings.Contains(string(second.lastWords()), "headrace jobs resume "+job) {
				t.Errorf("exit %d, want 4, and no %q in\n%s", code, c.says, second.lastWords())
			}
			if n := len(settled(t, f.judge)); n >= items {
				t.Errorf("%d calls for %d items: it did not stop", n, items)
			}
			if text, code := f.run("jobs", "resume", job, "--cluster", f.url()); code != 0 {
				t.Fatalf("jobs resume: exit %d: %s", code, text)
			}
			if code := f.finishes(typed(3, "--wait")); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			if n := linesOf(t, output) + linesOf(t, strings.TrimSuffix(output, ".jsonl")+".errors.jsonl"); n != items {
				t.Errorf("%d lines for %d items", n, items)
			}
		})
	}
}
