package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// A target is a package under mutation, and the packages whose tests must notice: its own
// and its nearest dependant's.
type target struct {
	dir   string
	tests []string
}

var targets = []target{
	{"limiter", []string{"limiter", "limiter/model", "coordinator/machine"}},
	{"limiter/model", []string{"limiter/model", "coordinator/machine"}},
	{"limiter/plain", []string{"limiter/plain", "limiter/model", "coordinator/machine"}},
	{"limiter/internal/measure", []string{"limiter/internal/measure", "limiter/plain", "limiter/model"}},
	{"limiter/internal/window", []string{"limiter/internal/window", "limiter/model"}},
	{"coordinator/machine", []string{"coordinator/machine", "coordinator"}},
	{"coordinator", []string{"coordinator", "batch"}},
	{"batch", []string{"batch"}},
	{"batch/serve/internal/line", []string{"batch/serve/internal/line", "batch/serve/internal/queue", "batch/serve"}},
	{"batch/serve/internal/queue", []string{"batch/serve/internal/queue", "batch/serve"}},
	{"observe", []string{"observe"}},
}

// aboutSource matches tests that judge the source instead of its behaviour. They are left
// out: they take seconds, and do not read the overlay.
const aboutSource = "Dependencies|Library|Pure|Purity|Documented|Examples?$"

// slowTests of a package run last, if the others have found nothing.
const slowTests = "AskingChangesNothing|RestoredLawGoesOn|SendsOfABusyLane|SameFactsSameDecisions|Storm|OverheadIsSmall"

// mutantSeeds is the number of simulated worlds that a mutant must survive.
const mutantSeeds = "SEEDS=100"

// A verdict is the fate of a mutant.
type verdict uint8

const (
	survived verdict = iota
	killed
	invalid // it does not compile
)

// A trier tries mutants in a scratch folder; the tree is never written to.
type trier struct {
	root, scratch string
	timeout       time.Duration
}

// tryAll tries mutants in the order of choice until n of them have compiled.
func (t *trier) tryAll(ctx context.Context, chosen []mutant, n, all int) error {
	if err := t.wellBefore(ctx, chosen); err != nil {
		return err
	}
	r := newReport(all)
	for _, m := range chosen {
		if r.tried() == n {
			break
		}
		v, by, err := t.try(ctx, m)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		r.add(m, v, by)
	}
	r.sum()
	return ctx.Err()
}

var errSick = errors.New("the tests fail before anything is broken")

// wellBefore makes sure that all these tests pass on the unchanged code.
func (t *trier) wellBefore(ctx context.Context, chosen []mutant) error {
	seen := map[string]bool{}
	for _, m := range chosen {
		for _, dir := range m.pkg.tests {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			v, by, err := t.test(ctx, dir, "")
			if err == nil && v != survived {
				err = fmt.Errorf("%w: %s: %s", errSick, dir, by)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// try applies one mutant, and runs the tests until one fails.
func (t *trier) try(ctx context.Context, m mutant) (v verdict, by string, err error) {
	overlay, err := t.lay(m)
	if err != nil {
		return invalid, "", err
	}
	for _, dir := range m.pkg.tests {
		if v, by, err = t.test(ctx, dir, overlay); v != survived || err != nil {
			return v, dir + " " + by, err
		}
	}
	return survived, "", nil
}

// lay writes the mutated file, and the overlay that makes go read it instead of the real
// one.
func (t *trier) lay(m mutant) (string, error) {
	path := filepath.Join(t.root, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	broken := filepath.Join(t.scratch, "broken.go")
	text := string(source[:m.from]) + m.text + string(source[m.to:])
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(t.scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// test builds the tests of a package once, and runs the quick ones, then the slow ones.
func (t *trier) test(ctx context.Context, dir, overlay string) (verdict, string, error) {
	binary := filepath.Join(t.scratch, "tests")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", binary, "./"+dir)
	build.Dir = t.root
	if out, err := build.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return invalid, "", ctx.Err()
		}
		if overlay == "" {
			return invalid, "", fmt.Errorf("%w: %s", err, out)
		}
		return invalid, "", nil
	}
	for _, which := range [][]string{{"-test.skip=" + aboutSource + "|" + slowTests}, {"-test.run=" + slowTests}} {
		if failed, by := t.runTests(ctx, dir, binary, which); failed {
			return killed, by, ctx.Err()
		}
	}
	return survived, "", ctx.Err()
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)$|^fatal error: (.*)$`)

// runTests runs a built test binary and reports whether it failed, and by which test. A run that
// takes too long has failed: the mutant may have made a loop endless.
func (t *trier) runTests(ctx context.Context, dir, binary string, args []string) (failed bool, by string) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	c := exec.CommandContext(ctx, binary, append(args, "-test.failfast", "-test.short")...)
	c.Dir = filepath.Join(t.root, dir)
	c.Env = append(os.Environ(), mutantSeeds)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	err := c.Run()
	switch {
	case err == nil:
		return false, ""
	case ctx.Err() != nil:
		return true, "took too long"
	}
	found := failedTest.FindSubmatch(out.Bytes())
	if found == nil {
		return true, err.Error()
	}
	return true, short(string(bytes.Join(found[1:], nil)))
}
