//go:build unix

package tests

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/provider/sim"
)

// flatMemory is the number of bytes by which a run's peak may exceed that of a run of a
// tenth of its items.
const flatMemory = 20 << 20

// A run of ten times the items takes no more memory; all are answered, none twice.
// One that finds results already remembers a small number of bytes for each. FEW and
// MANY set the two sizes.
func TestMemoryIsFlat(t *testing.T) {
	if race.Enabled {
		t.Skip("the command is built without the race detector: nothing of it would be found here")
	}
	few, many := setting(t, "FEW", 20_000), setting(t, "MANY", 200_000)
	bin := buildCommand(t)
	run, again := peaksOf(t, bin, few)
	runMany, againMany := peaksOf(t, bin, many)
	if more := runMany - run; more > flatMemory {
		t.Errorf("%d items took %.1f MiB more than %d", many, mib(more), few)
	}
	t.Logf("for each item more, a run takes %.1f bytes, going on behind results %.1f", perItem(runMany-run, many-few), perItem(againMany-again, many-few))
	if more := againMany - again; more > flatMemory+int64(many-few)*resumedBytes {
		t.Errorf("going on behind %d results took %.1f MiB more than behind %d", many, mib(more), few)
	}
}

// resumedBytes is twice what is remembered of an item when its result is there
// already: half of a heap is free when it is collected.
const resumedBytes = 2 * 16

func perItem(bytes int64, items int) float64 { return float64(bytes) / float64(items) }

// peaksOf is the most memory, in bytes, of a run of n items, and of the same command
// when nothing is left to do.
func peaksOf(t *testing.T, bin string, n int) (run, again int64) {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "out.jsonl")
	writeQuestions(t, in, n)
	args := []string{bin, "run", in, "-o", out, "--provider", "sim", "--sim-profile", "fast", "--durable", "os", "--progress", "none", "-c", "64"}
	run, took := peakOf(t, args...)
	eachOnce(t, out, n)
	again, looked := peakOf(t, args...)
	t.Logf("%d items: %.1f MiB in %v; with nothing left to do %.1f MiB in %v", n, mib(run), took, mib(again), looked)
	return run, again
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// measured names the command whose peak a helper process measures, and measuredCode the
// exit code with which it is to end.
const (
	measured     = "HEADRACE_MEASURED"
	measuredCode = "HEADRACE_MEASURED_CODE"
)

// peakOf runs the command to a good end and tells the most memory it had, in bytes.
func peakOf(t *testing.T, args ...string) (peak int64, took time.Duration) {
	t.Helper()
	return peakOfEnding(t, 0, args...)
}

// peakOfEnding is peakOf for a command that ends with that exit code.
//
// A process that is begun inherits the peak of the one it was begun by, so that one
// must be small: it is this test program once more, doing nothing else.
func peakOfEnding(t *testing.T, code int, args ...string) (peak int64, took time.Duration) {
	t.Helper()
	helper := exec.Command(os.Args[0], "-test.run=^TestMeasure$", "-test.v")
	helper.Env = append(os.Environ(), measured+"="+strings.Join(args, "\n"), measuredCode+"="+strconv.Itoa(code))
	began := time.Now()
	text, err := helper.CombinedOutput()
	_, rest, ok := strings.Cut(string(text), "peak: ")
	if err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	must.Get(fmt.Sscan(rest, &peak))(t)
	return peak, time.Since(began).Round(10 * time.Millisecond)
}

// What peakOf has run by itself.
func TestMeasure(t *testing.T) {
	args := strings.Split(os.Getenv(measured), "\n")
	if len(args) < 2 {
		t.Skip("only for a helper process")
	}
	cmd := exec.Command(args[0], args[1:]...)
	text, err := cmd.CombinedOutput()
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != os.Getenv(measuredCode) {
		t.Fatalf("%v: %s", err, text)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the system tells nothing about memory")
	}
	peak := int64(usage.Maxrss) //nolint:unconvert // it is smaller on some systems
	if runtime.GOOS != "darwin" {
		peak <<= 10 // in KiB everywhere else
	}
	fmt.Printf("peak: %d\n", peak)
}

// eachOnce fails the test unless items 1 to n have one line each, with the answer
// to their own prompt.
func eachOnce(t *testing.T, path string, n int) {
	t.Helper()
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	seen := make([]bool, n+1)
	lines := 0
	for in := bufio.NewScanner(file); in.Scan(); lines++ {
		i := itemOf(in.Bytes())
		if i < 1 || i > n || seen[i] || !bytes.Contains(in.Bytes(), []byte(sim.Checksum(question(i)))) {
			t.Fatalf("line %d is of no item, of one that has a line, or no answer to it: %s", lines+1, in.Text())
		}
		seen[i] = true
	}
	if lines != n {
		t.Errorf("%d lines for %d items", lines, n)
	}
}

// itemOf finds the item of a result line by its id, as idOf makes it; 0 for none.
func itemOf(line []byte) int {
	_, rest, _ := bytes.Cut(line, []byte(`"custom_id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	digits := strings.TrimPrefix(strings.TrimPrefix(string(id), "item-"), "line-")
	i, err := strconv.Atoi(digits)
	if err != nil || idOf(i) != string(id) {
		return 0
	}
	return i
}
