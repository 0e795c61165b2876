package run

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/disk"
)

// A memory is what a run knows from earlier ones, and where it keeps what it learns.
type memory struct {
	*verdict.Facts
	show           *display
	known          batch.Memory // what an earlier run has learned
	state          *stateFile   // keeps what the run learns; nil: nothing does
	answeredBefore bool         // by an earlier run of the same output, at the provider of this one
}

// stateFile returns the file in which this run keeps its state; nil where the output is no
// file for it to lie next to.
func (m *memory) stateFile() *stateFile {
	if m.Flags.ToStdout() || settings.IsNoFile(m.Flags.Output) {
		return nil
	}
	s := &stateFile{path: settings.StatePath(m.Flags.Output), law: m.Flags.Law, now: m.Clock.Now, disk: disk.Real(), synced: m.Flags.Durability() == saver.Sync}
	for _, other := range append(slices.Clone(m.Inputs), m.Flags.Output, m.Flags.ErrorsPath()) {
		if journal.SameFile(other, s.path) {
			return nil
		}
	}
	s.server, s.print = m.Account.ServerOf()
	return s
}

// recall finds what an earlier run has left, and where to save to. It reports faults as
// notices, not as errors.
func (m *memory) recall(begun promptfile.Begun) {
	m.answeredBefore = begun.Results > 0
	s := m.stateFile()
	if s == nil {
		return
	}
	known, err := s.load()
	if errors.Is(err, errNotOurs) || errors.Is(err, errUnread) {
		m.show.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v", s.path, err))
		return
	}
	m.state = s
	m.answeredBefore = m.answeredBefore && !errors.Is(err, errOthers)
	switch {
	case m.Flags.Forget:
		_ = os.Remove(s.path) // if it stays, the next save replaces it, or it is too old one day
	case err != nil:
		m.show.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v; the run learns the provider's limits again", s.path, err))
	default:
		m.known = known
	}
	if begun.Fresh {
		m.known.Items = nil // each item is asked for the first time
	}
}

func (m *memory) options() []batch.Option {
	if m.state == nil {
		return nil
	}
	return []batch.Option{batch.WithMemory(m.known), batch.WithMemorySaver(m.state.save)}
}

// sayUnsaved says that what the run has learned is not saved, and why.
func (m *memory) sayUnsaved(err error) {
	if err != nil {
		m.show.console.Notice(event.State, fmt.Sprintf("%s is not up to date: %s; only what was learned about the provider is lost", m.state.path, exit.PlainText(errors.Unwrap(err))))
	}
}

// The state file keeps what is known of the lanes from one run to the next. It lies next to the
// output: results.state.json for results.jsonl. It says how long the provider asked to wait,
// how far a ramp has come, and how often unfinished items have failed. It also holds all that
// was learned of limits. It is no journal: deleting it loses only what was learned.
//
// It is written as a whole, to another name first, and is on the disk before it gets its
// own: a loss of power leaves this one or the one before. With --durable os it is not
// synced: a state damaged by a loss of power is detected, and not used.

const (
	stateVersion = 2 // the second has items; the first is read as one without

	// stateKept is the age up to which knowledge of a lane is believed. Waits and ramps
	// expire by themselves, as they are points in time; limits of a day ago may be those of
	// another tier.
	stateKept = 24 * time.Hour

	// stateAhead bounds how far in the future of this machine's clock a state may have been
	// saved: clocks are corrected by less. Beyond it the waits in the state mean nothing.
	stateAhead = time.Minute

	// maxState is the greatest length of a state, in bytes. A lane, which is a model, takes up
	// to 5,000, and the largest set of items takes 800,000.
	maxState = 16 << 20
)

// stateMark is the beginning of every state. A file of that name that begins otherwise is
// somebody else's.
const stateMark = `{"headrace_state":`

// sealedState is the content of the file: a state, and the sum that tells that it is whole.
type sealedState struct {
	Version int             `json:"headrace_state"`
	Sum     string          `json:"sum"` // SHA-256 of State as it stands in the file
	State   json.RawMessage `json:"state"`
}

// savedState holds what a run has learned, and the server that it is about.
type savedState struct {
	Saved  time.Time `json:"saved"`
	Server string    `json:"server"`
	Print  string    `json:"fingerprint"`
	batch.Memory
}

// stateFile keeps the state of one output.
type stateFile struct {
	path   string
	server string // the server that it is about
	print  string
	law    string
	now    func() time.Time

	disk   disk.Disk
	synced bool // it survives the loss of power
}

// The reasons for not using a state.
var (
	errNotOurs = errors.New("headrace did not write this file, so it stays as it is, and what is learned is not saved")
	errUnread  = errors.New("it stays as it is, and what is learned is not saved")
	errDamaged = errors.New("it is damaged")
	errOthers  = errors.New("it is about")
)

// load reads the state. A missing file is an empty state.
func (s *stateFile) load() (none batch.Memory, err error) {
	text, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case errors.Is(err, errNotOurs):
		return none, err
	case err != nil: // nobody can know whose file it is
		return none, fmt.Errorf("%w: %w", err, errUnread)
	case len(bytes.Trim(text, "\x00")) == 0: // a loss of power left it empty
		return none, errDamaged
	case !bytes.HasPrefix(text, []byte(stateMark)):
		return none, errNotOurs
	}
	saved, err := unseal(text)
	if err != nil {
		return none, err
	}
	return saved.Memory, s.check(saved)
}

// read returns the text of a regular file only: a link could lead anywhere, and a pipe could
// keep the run waiting.
func (s *stateFile) read() ([]byte, error) {
	named, err := os.Lstat(s.path)
	if err != nil {
		return nil, disk.Bare(err)
	}
	if !named.Mode().IsRegular() {
		return nil, errNotOurs
	}
	file, err := os.Open(s.path)
	if err != nil {
		return nil, disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if opened, err := file.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, errNotOurs
	}
	text, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err != nil {
		return nil, disk.Bare(err)
	}
	if len(text) > maxState {
		return nil, errNotOurs
	}
	return text, nil
}

// unseal opens a text that is one of ours. It accepts unknown fields in what the sum covers:
// another headrace may remember more of a law.
func unseal(text []byte) (*savedState, error) {
	var sealed sealedState
	if err := strictly(text, &sealed); err != nil {
		return nil, errDamaged
	}
	if sealed.Version < 1 || sealed.Version > stateVersion {
		return nil, fmt.Errorf("it has version %d; this headrace reads up to version %d", sealed.Version, stateVersion)
	}
	var saved savedState
	if sealed.Sum != sumOf(sealed.State) || json.Unmarshal(sealed.State, &saved) != nil {
		return nil, errDamaged
	}
	return &saved, nil
}

// strictly reads a text that holds one value, and refuses unknown fields.
func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errDamaged
	}
	return nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// check reports whether a whole state is for this run.
func (s *stateFile) check(saved *savedState) error {
	switch ahead := saved.Saved.Sub(s.now()); {
	case ahead > stateAhead:
		return fmt.Errorf("it was saved %s in the future by this machine's clock", words.Wait(ahead))
	case saved.Server != s.server:
		return fmt.Errorf("%w %s, and this run calls %s", errOthers, settings.Clipped(saved.Server), s.server)
	case saved.Print != s.print:
		return fmt.Errorf("%w another address, key or organisation", errOthers)
	}
	for name, k := range saved.Lanes {
		if err := k.Validate(); err != nil {
			return errors.New(exit.PlainText(err))
		}
		if k.Law.Law != s.law {
			return fmt.Errorf("it is for --law %s, and this run uses %s", settings.Clipped(k.Law.Law), s.law)
		}
		// The run saves unused knowledge again as it came, so it may be older than the file.
		if s.now().Sub(k.Law.At) > stateKept {
			delete(saved.Lanes, name)
		}
	}
	for key, k := range saved.Items {
		if k.Validate() != nil {
			delete(saved.Items, key)
		}
	}
	if len(saved.Lanes) == 0 && len(saved.Items) == 0 {
		return fmt.Errorf("it is older than %s", words.Wait(stateKept))
	}
	return nil
}

// save writes the state at once or not at all. One goroutine calls it.
func (s *stateFile) save(m batch.Memory) error {
	state, err := json.Marshal(savedState{Saved: s.now().UTC().Round(0), Server: s.server, Print: s.print, Memory: m})
	if err != nil {
		return err
	}
	text, err := json.Marshal(sealedState{Version: stateVersion, Sum: sumOf(state), State: state})
	if err != nil {
		return err
	}
	if len(text) >= maxState {
		return fmt.Errorf("it would exceed %d bytes", maxState)
	}
	return s.write(append(text, '\n'))
}

// write replaces the file. It leaves a foreign file under either name alone.
func (s *stateFile) write(text []byte) error {
	ours, d := disk.Marked(stateMark), s.disk
	if !s.synced {
		d = d.Unsynced()
	}
	if err := disk.Inspect(s.path, ours); errors.Is(err, disk.ErrInTheWay) {
		return err
	}
	return disk.Bare(d.Replace(s.path, ours, func(out *bufio.Writer) error {
		_, err := out.Write(text)
		return err
	}))
}
