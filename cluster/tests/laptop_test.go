package tests

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The example runs as it stands, on other ports; and a worker that is killed while it runs, as
// it says one may be, costs nothing.
func TestLaptop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	results := filepath.Join(dir, "results.jsonl")
	p := newProcess(t, dir, "laptop", "../../examples/cluster/laptop.sh", "../../examples/prompts.jsonl", results)
	p.env = append(p.env, "HEADRACE="+command(t), "PROVIDER="+freePort(t), "HUB="+freePort(t), "TMPDIR="+dir)
	p.start()
	killed := workerOf(t, p)
	time.Sleep(time.Second) // at whatever it is
	_ = syscall.Kill(killed, syscall.SIGKILL)
	if code := p.ends(2 * time.Minute); code != 0 {
		t.Errorf("exit %d", code)
	}
	lines, err := normalFile(results)
	if err != nil || len(lines) != 240 || len(surplus(lines, unique(lines))) > 0 {
		t.Errorf("%d results of 240 prompts, %d different: %v", len(lines), len(unique(lines)), err)
	}
}

// workerOf is the process of the first worker, as the script prints it.
func workerOf(t *testing.T, p *process) (pid int) {
	t.Helper()
	for range 1000 {
		_, after, found := strings.Cut(string(p.lastWords()), "worker 1 is process ")
		if n, _ := fmt.Sscan(after, &pid); found && n == 1 {
			return pid
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it has started no worker")
	return 0
}

func unique(lines []string) (once []string) {
	seen := map[string]bool{}
	for _, line := range lines {
		if !seen[line] {
			once = append(once, line)
		}
		seen[line] = true
	}
	return once
}
