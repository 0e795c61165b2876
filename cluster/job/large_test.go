//go:build linux

package job_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
)

// What a process may take of memory with a job, the program itself included, in bytes.
const (
	programRoom = 100_000_000 // and of a keeper, however many lines the job has
	lineRoom    = 8           // for each line, of a process that reads its inputs through
)

// TestLarge measures how a file of ten million lines, a gigabyte, is read through and cut: how
// long it takes, and how much memory a process that does nothing else takes. It runs with LARGE=1
// in the environment; LARGE_LINES says another number of lines.
func TestLarge(t *testing.T) {
	if os.Getenv("LARGE") == "" {
		t.Skip("it takes minutes, and two gigabytes on the disk: LARGE=1 runs it")
	}
	lines := 10_000_000
	if n, err := strconv.Atoi(os.Getenv("LARGE_LINES")); err == nil {
		lines = n
	}
	for _, kind := range []string{"ids", "no ids", "one question", "ids of lines"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			writeLarge(t, filepath.Join(dir, "in.jsonl"), kind, lines)
			for _, step := range []string{"index", "chunks"} {
				began := time.Now()
				peak, worked := inChild(t, step, dir)
				t.Logf("%s: %.1f s, %.1f s of processor time, %d MB at the peak", step, time.Since(began).Seconds(), worked.Seconds(), peak/1_000_000)
				most := int64(programRoom)
				if step == "index" {
					most += int64(lineRoom * lines)
				}
				if peak > most {
					t.Errorf("%s takes %d bytes, %d are the most", step, peak, most)
				}
			}
		})
	}
}

// writeLarge writes lines of a hundred bytes.
func writeLarge(t *testing.T, path, kind string, lines int) {
	t.Helper()
	file := must.Get(os.Create(path))(t)
	out := bufio.NewWriterSize(file, 1<<20)
	for i := range lines {
		switch kind {
		case "ids":
			fmt.Fprintf(out, "{\"custom_id\":\"item-%09d\",\"prompt\":\"Which rivers does it cross on its way down, and where are they?\"}\n", i)
		case "no ids":
			fmt.Fprintf(out, "{\"prompt\":\"Which rivers does %09d cross on its way down to the sea, and where are they met?\"}\n", i)
		case "one question":
			fmt.Fprintf(out, "{\"prompt\":\"Which rivers does a traveller cross on the way down to the sea, and where are they met?\"}\n")
		default:
			fmt.Fprintf(out, "{\"custom_id\":\"line-%06d\",\"prompt\":\"Which rivers does it cross on its way down, and where?\"}\n", i+1)
		}
	}
	must.Do(t, out.Flush())
	must.Do(t, file.Close())
}

// inChild does one step in a process of its own, and tells its peak of memory in bytes, and its
// processor time.
func inChild(t *testing.T, step, dir string) (peak int64, worked time.Duration) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLargeStep$", "-test.v", "-test.timeout=0")
	child.Env = append(os.Environ(), "LARGE_STEP="+step, "LARGE_DIR="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of := child.ProcessState
	return of.SysUsage().(*syscall.Rusage).Maxrss * 1024, of.UserTime() + of.SystemTime()
}

// TestLargeStep runs in the children of TestLarge.
func TestLargeStep(t *testing.T) {
	step, dir := os.Getenv("LARGE_STEP"), os.Getenv("LARGE_DIR")
	if step == "" {
		t.Skip("a part of TestLarge")
	}
	ctx := t.Context()
	folder := must.Get(store.Open(ctx, filepath.Join(dir, "store")))(t)
	inputs := must.Get(store.Open(ctx, dir))(t)
	src := &index.Source{Store: folder, Open: func(context.Context, string) (store.Store, error) { return inputs, nil }}
	switch step {
	case "index":
		largeIndex(t, src)
	case "chunks":
		largeChunks(t, src)
	}
}

func largeIndex(t *testing.T, src *index.Source) {
	src.Record = job.Record{Job: "large", Reading: job.Reading{Model: "m"}}
	in, err := src.Inspect(t.Context(), index.File{Name: "in.jsonl", Format: job.JSONL, Store: "x", Object: "in.jsonl"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	src.Record.Inputs = []job.Input{in}
	if src.Record, err = job.Create(t.Context(), src.Store, src.Record); err != nil {
		t.Fatal(err)
	}
	plan, err := src.Plan(t.Context(), 3, "k")
	if err != nil || plan.Refused() != nil {
		t.Fatal(err, plan.Refused())
	}
	name := must.Get(plan.Save(t.Context(), src.Store, "k"))(t)
	must.Get(job.Change(t.Context(), src.Store, "large", func(r *job.Record) error { r.Plan = name; return nil }))(t)
}

// largeChunks goes over all chunks, and reads some.
func largeChunks(t *testing.T, src *index.Source) {
	var err error
	if src.Record, err = job.Load(t.Context(), src.Store, "large"); err != nil {
		t.Fatal(err)
	}
	plan := must.Get(index.LoadPlan(t.Context(), src.Store, &src.Record))(t)
	lines, read := 0, 0
	chunks := index.NewChunks(src.Store, &src.Record, plan)
	for n := range chunks.Len() {
		c := must.Get(chunks.At(t.Context(), n))(t)
		if lines += c.Lines; c.Number%100 != 0 {
			continue
		}
		for _, err := range src.Read(t.Context(), &c) {
			if read++; err != nil {
				t.Fatal(err)
			}
		}
	}
	if lines != plan.Lines || plan.Items != plan.Lines || read == 0 {
		t.Errorf("%d lines in chunks, %d read, of %+v", lines, read, plan)
	}
}
