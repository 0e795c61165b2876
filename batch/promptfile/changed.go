package promptfile

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/headrace/headrace/batch/prompts"
)

// ErrChanged says that the input changed during the run. Another run asks what is left.
var ErrChanged = errors.New("the input changed after it was checked")

// checked describes the input at the time of its check.
type checked struct {
	files  []os.FileInfo
	digest prompts.Digest
}

// look records which files are about to be checked. A later change shows as another time or
// size.
func (j *Job) look() (err error) {
	if j.checked.files, err = j.cfg.Input.stat(); err != nil {
		return fmt.Errorf("promptfile: %w: %w", err, ErrInput)
	}
	return nil
}

// changed compares the checked input with the one that was read to its end, and with the
// one that is there when the run is over. It reads the last one only if its time or size
// differs. An input that is gone by then was read whole.
func (j *Job) changed(in *intake) error {
	if j.cfg.Input.Stream || !in.whole {
		return nil
	}
	if in.digest != j.checked.digest {
		read := in.done + in.failed + in.given
		return fmt.Errorf("promptfile: %s: %w: %d items were checked and %d were read", j.cfg.Input.Name, ErrChanged, j.plan.Items, read)
	}
	now, err := j.cfg.Input.stat()
	if err != nil || j.checked.is(now) {
		return nil //nolint:nilerr // see above
	}
	cfg := j.cfg.reader()
	cfg.Passing, cfg.NoKeys, cfg.Takes = true, true, j.takesAgain() // a limit counts the same lines
	var found Scanned
	if err := found.read(j.cfg.Input, cfg, j.cfg.Drain, func(prompts.Request) {}); err != nil {
		return nil //nolint:nilerr // the run is to end now, or the input is gone
	}
	if found.Digest == j.checked.digest {
		return nil
	}
	return fmt.Errorf("promptfile: %s: %w: its content has changed since it was read", j.cfg.Input.Name, ErrChanged)
}

// is reports whether no file has been written to since.
func (c *checked) is(now []os.FileInfo) bool {
	return slices.EqualFunc(c.files, now, func(then, now os.FileInfo) bool {
		return os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
	})
}
