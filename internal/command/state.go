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

// statePath is where the state of an output is: its name with .state.json for .jsonl, or behind
// any other ending.
func statePath(output string) string {
	return journal.Beside(output, ".state.json")
}

// stateFile is where this run keeps its state; nil where there is no file to lie beside.
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

// serverOf says whom the run calls, for people, and gives a print of the whole address, the
// key and the organisation, by which another is known.
//
// The print is one byte. Of any list of keys that somebody might try one in 256 has the
// same, so it confirms no guess; and a state that is mistaken for one's own, as seldom,
// is a false belief about limits, which a run corrects.
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

// recall finds out what an earlier run has left, and where to save to. What is wrong with
// it is said, and no error.
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
		_ = os.Remove(s.path) // if it stays, it is replaced, or too old one day
	case err != nil:
		r.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v; the run learns the provider's limits again", s.path, err))
	default:
		r.known = known
	}
	if begun.Fresh {
		r.known.Items = nil // each is asked for the first time
	}
}

func (r *runner) stateOptions() []batch.Option {
	if r.state == nil {
		return nil
	}
	return []batch.Option{batch.WithMemory(r.known), batch.WithMemorySaver(r.state.save)}
}

// sayUnsaved says that what was learned is not kept, and why.
func (r *runner) sayUnsaved(err error) {
	if err != nil {
		r.console.Notice(event.State, fmt.Sprintf("%s is not up to date: %s; only what was learned about the provider is lost", r.state.path, plainText(errors.Unwrap(err))))
	}
}

// identity tells one account from another, as far as that is known without asking.
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
