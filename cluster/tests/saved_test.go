package tests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headrace/headrace/batch/journal"
)

// saved are the questions of the one job whose answers the store has, in journals or in parts, as files show it. What is
// taken away while it is looked at is in a part that is looked at later: those come last in a folder's
// order only by chance, so it is looked twice.
func (f *fleet) saved() map[string]bool {
	all := map[string]bool{}
	for range 2 {
		_ = filepath.WalkDir(filepath.Join(f.home, "jobs"), func(path string, entry fs.DirEntry, err error) error {
			// The folders are those of a job in the store, see package job.
			if err == nil && entry.Type().IsRegular() && (strings.Contains(path, "/work/") || strings.Contains(path, "/parts/")) {
				f.savedIn(path, all)
			}
			return nil // a missing file was deleted just now
		})
	}
	return all
}

// savedIn adds what one file has. A file that is being written has no name yet.
func (f *fleet) savedIn(path string, all map[string]bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		var l journal.Line
		if json.Unmarshal(line, &l) != nil || l.Headrace.Line == 0 {
			continue // what stands around the results
		}
		all[f.given.at[l.Headrace.Line]] = true
	}
}
