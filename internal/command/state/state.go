package state

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
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/disk"
)

// The state file keeps what is known of the lanes from one run to the next. It lies next to the
// output: results.state.json for results.jsonl. It says how long the provider asked to wait,
// how far a ramp has come, and how often unfinished items have failed. It also holds all that
// was learned of limits. It is no journal: deleting it loses only what was learned.
//
// It is written as a whole, to another name first, and is on the disk before it gets its
// own: a loss of power leaves this one or the one before. With --durable os it is not
// synced: a state damaged by a loss of power is detected, and not used.

const (
	version = 2 // the second has items; the first is read as one without

	// maxAge is the age up to which knowledge of a lane is believed. Waits and ramps
	// expire by themselves, as they are points in time; limits of a day ago may be those of
	// another tier.
	maxAge = 24 * time.Hour

	// maxAhead bounds how far in the future of this machine's clock a state may have been
	// saved: clocks are corrected by less. Beyond it the waits in the state mean nothing.
	maxAhead = time.Minute

	// maxBytes is the greatest length of a state, in bytes. A lane, which is a model, takes up
	// to 5,000, and the largest set of items takes 800,000.
	maxBytes = 16 << 20
)

// mark is the beginning of every state. A file of that name that begins otherwise is
// somebody else's.
const mark = `{"headrace_state":`

// sealed is the content of the file: a state, and the sum that tells that it is whole.
type sealed struct {
	Version int             `json:"headrace_state"`
	Sum     string          `json:"sum"` // SHA-256 of State as it stands in the file
	State   json.RawMessage `json:"state"`
}

// saved holds what a run has learned, and the server that it is about.
type saved struct {
	Saved  time.Time `json:"saved"`
	Server string    `json:"server"`
	Print  string    `json:"fingerprint"`
	batch.Memory
}

// A File keeps the state of one output, or of a server.
type File struct {
	Path   string
	Server string // the server that it is about
	Print  string // tells its address, key and organisation from others
	Law    string
	Now    func() time.Time

	Disk   disk.Disk
	Synced bool // it survives the loss of power
}

// The reasons for which a state is not used.
var (
	ErrNotOurs = errors.New("headrace did not write this file, so it stays as it is, and what is learned is not saved")
	ErrUnread  = errors.New("it stays as it is, and what is learned is not saved")
	errDamaged = errors.New("it is damaged")
	ErrOthers  = errors.New("it is about")
)

// Load reads the state, and returns an error if it cannot be used. A missing file is an empty state.
func (s *File) Load() (none batch.Memory, err error) {
	text, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case errors.Is(err, ErrNotOurs):
		return none, err
	case err != nil: // nobody can know whose file it is
		return none, fmt.Errorf("%w: %w", err, ErrUnread)
	case len(bytes.Trim(text, "\x00")) == 0: // a loss of power left it empty
		return none, errDamaged
	case !bytes.HasPrefix(text, []byte(mark)):
		return none, ErrNotOurs
	}
	in, err := unseal(text)
	if err != nil {
		return none, err
	}
	return in.Memory, s.check(in)
}

// read returns the text of a regular file. It refuses a link, which could lead anywhere, and a pipe, which could keep
// the run waiting.
func (s *File) read() ([]byte, error) {
	named, err := os.Lstat(s.Path)
	if err != nil {
		return nil, disk.Bare(err)
	}
	if !named.Mode().IsRegular() {
		return nil, ErrNotOurs
	}
	file, err := os.Open(s.Path)
	if err != nil {
		return nil, disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if opened, err := file.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, ErrNotOurs
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, disk.Bare(err)
	}
	if len(text) > maxBytes {
		return nil, ErrNotOurs
	}
	return text, nil
}

// unseal checks and reads the text of a state. It accepts unknown fields in the sealed part, as another headrace may
// remember more.
func unseal(text []byte) (*saved, error) {
	var s sealed
	if err := decodeStrictly(text, &s); err != nil {
		return nil, errDamaged
	}
	if s.Version < 1 || s.Version > version {
		return nil, fmt.Errorf("it has version %d; this headrace reads up to version %d", s.Version, version)
	}
	var in saved
	if s.Sum != sumOf(s.State) || json.Unmarshal(s.State, &in) != nil {
		return nil, errDamaged
	}
	return &in, nil
}

// decodeStrictly reads a text that holds one value, and refuses unknown fields.
func decodeStrictly(text []byte, to any) error {
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

// check returns an error if a state is not for this run. It drops lanes and items that are too old or invalid.
func (s *File) check(in *saved) error {
	switch early := in.Saved.Sub(s.Now()); {
	case early > maxAhead:
		return fmt.Errorf("it was saved %s in the future by this machine's clock", words.Wait(early))
	case in.Server != s.Server:
		return fmt.Errorf("%w %s, and this run calls %s", ErrOthers, settings.Clipped(in.Server), s.Server)
	case in.Print != s.Print:
		return fmt.Errorf("%w another address, key or organisation", ErrOthers)
	}
	for name, k := range in.Lanes {
		if err := k.Validate(); err != nil {
			return errors.New(exit.PlainText(err))
		}
		if k.Law.Law != s.Law {
			return fmt.Errorf("it is for --law %s, and this run uses %s", settings.Clipped(k.Law.Law), s.Law)
		}
		// The run saves unused knowledge again as it came, so it may be older than the file.
		if s.Now().Sub(k.Law.At) > maxAge {
			delete(in.Lanes, name)
		}
	}
	for key, k := range in.Items {
		if k.Validate() != nil {
			delete(in.Items, key)
		}
	}
	if len(in.Lanes) == 0 && len(in.Items) == 0 {
		return fmt.Errorf("it is older than %s", words.Wait(maxAge))
	}
	return nil
}

// Save writes the state at once or not at all. One goroutine calls it.
func (s *File) Save(m batch.Memory) error {
	state, err := json.Marshal(saved{Saved: s.Now().UTC().Round(0), Server: s.Server, Print: s.Print, Memory: m})
	if err != nil {
		return err
	}
	text, err := json.Marshal(sealed{Version: version, Sum: sumOf(state), State: state})
	if err != nil {
		return err
	}
	if len(text) >= maxBytes {
		return fmt.Errorf("it would exceed %d bytes", maxBytes)
	}
	return s.write(append(text, '\n'))
}

// write replaces the file. It refuses to replace a file of somebody else, under its own name or that of the new file.
func (s *File) write(text []byte) error {
	ours, d := disk.Marked(mark), s.Disk
	if !s.Synced {
		d = d.Unsynced()
	}
	if err := disk.Inspect(s.Path, ours); errors.Is(err, disk.ErrInTheWay) {
		return err
	}
	return disk.Bare(d.Replace(s.Path, ours, func(out *bufio.Writer) error {
		_, err := out.Write(text)
		return err
	}))
}
