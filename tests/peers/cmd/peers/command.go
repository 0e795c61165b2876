package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// drain is the time that a run that is out of time may take to save what is in flight.
const drain = 5 * time.Second

// said is the summary of headrace run at its end.
type said struct {
	Event     string `json:"event"`
	Succeeded int    `json:"succeeded"`
	Failed    int    `json:"failed"`
	Throttled int64  `json:"throttled"`
	Proved    bool   `json:"proved"`
}

// headrace runs the command until it ends or its time is up.
func headrace(ctx context.Context, p plan, r row, url, dir string) (s said, took time.Duration, err error) {
	prompts := filepath.Join(dir, "prompts.jsonl")
	if err := writePrompts(prompts, r.items); err != nil {
		return s, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit(r))
	defer cancel()
	var stderr bytes.Buffer
	cmd := command(ctx, p.bin, arguments(r, prompts, url, dir), dir)
	cmd.Stderr = &stderr
	begun := time.Now()
	err = cmd.Run()
	took = time.Since(begun)
	s, last := summary(stderr.Bytes())
	// A failed item is a miss of the row, and so is a run that is out of time.
	if s.Event == "" || (err != nil && ctx.Err() == nil && s.Failed == 0) {
		return s, took, fmt.Errorf("headrace run: %w: %s", errors.Join(err, context.Cause(ctx)), last)
	}
	return s, took, nil
}

// command returns a command that is interrupted when its time is up, and then saves what is
// in flight.
func command(ctx context.Context, bin string, args []string, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = drain
	// The user's environment is left out: a HEADRACE_RPM in it would set the limit.
	cmd.Env = []string{"OPENAI_API_KEY=peers", "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// limit is the time after which a run is given up: four times the ideal, and 20 s for a
// start that feels its way.
func limit(r row) time.Duration {
	return time.Duration((4*r.ideal(r.items) + 20) * float64(time.Second))
}

func arguments(r row, prompts, url, dir string) []string {
	args := []string{"run", prompts, "-o", filepath.Join(dir, "results.jsonl"), "--base-url", url, "--model", "m", "--progress", "json"}
	if r.inFlight > 0 {
		args = append(args, "--concurrency", strconv.Itoa(r.inFlight))
	}
	return append(args, r.flags...)
}

func writePrompts(path string, items int) error {
	var b bytes.Buffer
	for i := range items {
		fmt.Fprintf(&b, "{\"prompt\":\"Question %d: name three rivers.\"}\n", i)
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// summary finds the summary of a run, and the last line in case there is none.
func summary(stderr []byte) (s said, last string) {
	lines := bufio.NewScanner(bytes.NewReader(stderr))
	for lines.Scan() {
		var one said
		last = lines.Text()
		if json.Unmarshal(lines.Bytes(), &one) == nil && one.Event == "summary" {
			s = one
		}
	}
	return s, last
}
