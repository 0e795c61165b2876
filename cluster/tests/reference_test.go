package tests

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Two runs of one process over a file with every form of line differ in what is dropped, and
// in nothing else: so whatever else differs between a cluster and one process is the cluster's.
func TestTwoRunsAreTheSame(t *testing.T) {
	dir := t.TempDir()
	bin, err := buildIn("../..", filepath.Join(dir, "headrace"))
	if err != nil {
		t.Fatal(err)
	}
	q := writeQuestions(t, filepath.Join(dir, "in.jsonl"), "twice", 1000)
	var outputs [2]string
	for i, latency := range []time.Duration{0, 10 * time.Millisecond} {
		j := newJudge(t, sim.Config{Latency: sim.Latency{Median: latency, Sigma: 0.4}, Headers: i == 1, RPM: 60 * 1000})
		outputs[i] = filepath.Join(dir, []string{"a", "b"}[i]+".jsonl")
		p := newProcess(t, dir, "run", bin, "run", q.path, "-o", outputs[i], "--order", "input", "--base-url", j.base("one"), "--progress", "none", "-c", "32")
		p.start()
		if code := p.ends(comeUp); code != 1 {
			t.Fatalf("exit %d, want 1: some lines are bad", code)
		}
		a := audit{asked: q.asked}
		if v := a.judge(settled(t, j)); v.repeated != 0 || v.calls < q.items {
			t.Errorf("%+v", v)
		}
		calls := j.asked()
		p.start()
		if code := p.ends(comeUp); code != 1 || j.asked() != calls {
			t.Errorf("once more: exit %d, %d calls", code, j.asked()-calls)
		}
	}
	sameLines(t, outputs[0], outputs[1])
	lines, err := normalFile(outputs[0])
	if bad := q.items / badEvery; err != nil || len(lines) < q.items-bad || len(lines) >= q.items {
		t.Errorf("%d results of %d items: %v", len(lines), q.items, err)
	}
}
