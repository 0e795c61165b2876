package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// table prints the outcomes as Markdown, and counts them.
func table(out io.Writer, found []outcome) (passed, failed, absent int) {
	fmt.Fprintln(out, "| server | ideal s | took s | ratio | refused | as headrace counts | done | |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---|")
	for _, o := range found {
		fmt.Fprintln(out, o.line())
		switch {
		case o.Absent:
			absent++
		case len(o.Faults) > 0:
			failed++
		default:
			passed++
		}
	}
	return passed, failed, absent
}

func (o outcome) line() string {
	if o.Absent {
		return fmt.Sprintf("| %s | | | | | | | %s |", o.Name, o.verdict())
	}
	least := ""
	if o.Done < o.Items {
		least = "> "
	}
	return fmt.Sprintf("| %s | %.1f | %.1f | %s%.2f | %d | %d | %d of %d | %s |",
		o.Name, o.Ideal, o.Took, least, o.Ratio, o.Server.Refused, o.Throttled, o.Done, o.Items, o.verdict())
}

// save writes the outcomes for a program: to compare two builds, or to plot.
func save(path string, found []outcome) error {
	data, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
