package command

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider/auth"
)

// statePath returns the path of an output's state: its name with .state.json in place of
// .jsonl, or after any other ending.
func statePath(output string) string {
	return journal.Beside(output, ".state.json")
}

// stateFile returns the file in which this run keeps its state; nil where the output is no
// file for it to lie next to.
func (r *runner) stateFile() *stateFile {
	if r.flags.toStdout() || isNoFile(r.flags.output) {
		return nil
	}
	s := &stateFile{path: statePath(r.flags.output), law: r.flags.law, now: r.clock.Now, disk: disk.Real(), synced: r.flags.durability() == saver.Sync}
	for _, other := range append(slices.Clone(r.inputs), r.flags.output, r.flags.errorsPath()) {
		if journal.SameFile(other, s.path) {
			return nil
		}
	}
	s.server, s.print = r.serverOf()
	return s
}

// serverOf returns the name of the called server, for people, and a print of the whole
// address, the key and the organisation. The print tells another server apart.
//
// The print is one byte. In any list of keys to try, one in 256 has the same print, so it
// confirms no guess. A foreign state passes for one's own as seldom. It is then a false
// belief about limits, which a run corrects.
func (r *runner) serverOf() (server, mark string) {
	if r.backend.books != nil {
		return providerSim + " " + r.flags.simProfile, ""
	}
	base := strings.TrimRight(r.flags.baseURL, "/")
	server = r.backend.name
	if u, err := url.Parse(base); err == nil && u.Host != "" && !isOpenAI(base) {
		server += " at " + u.Scheme + "://" + u.Host
	}
	sum := sha256.Sum256([]byte("headrace state\n" + base + "\n" + r.identity()))
	return server, hex.EncodeToString(sum[:1])
}

// recall finds what an earlier run has left, and where to save to. It reports faults as
// notices, not as errors.
func (r *runner) recall(begun promptfile.Begun) {
	r.answeredBefore = begun.Results > 0
	s := r.stateFile()
	if s == nil {
		return
	}
	known, err := s.load()
	if errors.Is(err, errNotOurs) || errors.Is(err, errUnread) {
		r.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v", s.path, err))
		return
	}
	r.state = s
	r.answeredBefore = r.answeredBefore && !errors.Is(err, errOthers)
	switch {
	case r.flags.forget:
		_ = os.Remove(s.path) // if it stays, the next save replaces it, or it is too old one day
	case err != nil:
		r.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v; the run learns the provider's limits again", s.path, err))
	default:
		r.known = known
	}
	if begun.Fresh {
		r.known.Items = nil // each item is asked for the first time
	}
}

func (r *runner) stateOptions() []batch.Option {
	if r.state == nil {
		return nil
	}
	return []batch.Option{batch.WithMemory(r.known), batch.WithMemorySaver(r.state.save)}
}

// sayUnsaved says that what the run has learned is not saved, and why.
func (r *runner) sayUnsaved(err error) {
	if err != nil {
		r.console.Notice(event.State, fmt.Sprintf("%s is not up to date: %s; only what was learned about the provider is lost", r.state.path, plainText(errors.Unwrap(err))))
	}
}

// identity tells one account from another, as far as that is possible without a call.
func (r *runner) identity() string {
	known := []string{r.backend.proven}
	if key, is := r.backend.proof.(*auth.Key); is {
		known = key.Secrets()
	}
	for _, source := range r.backend.added {
		if key, is := source.(*auth.Key); is {
			known = slices.Concat(known, key.Secrets())
		}
	}
	return strings.Join(slices.Concat(known, r.backend.told), "\n")
}
