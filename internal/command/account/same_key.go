package account

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/disk"
)

const (
	// neighboursEvery is the time between two looks for other runs: a look reads one small
	// folder.
	neighboursEvery = time.Second
	// mostNeighbours bounds the files of one key that a look opens.
	mostNeighbours = 100
)

// neighbour is a run of another process that calls with the same key.
type neighbour struct {
	Version int    `json:"headrace_run"`
	PID     int    `json:"pid"`
	Output  string `json:"output"`
	Serve   string `json:"serve,omitempty"` // the address of headrace serve; "": a run
}

// neighbours are the runs with one key on this machine. Each has a file in the folder, which it
// holds locked: the system drops the lock when the process ends, in whatever way.
type neighbours struct {
	folder, prefix, name string
	lock                 *flock.Flock
	shares               bool   // this run would go through a headrace serve
	refused              string // the address of one that does not let it in
}

// keyPrint tells keys apart. It is as short as an account's digits, and so confirms no guess
// of a key.
func keyPrint(key string) string {
	sum := sha256.Sum256([]byte("headrace key\n" + key))
	return hex.EncodeToString(sum[:])[:accountDigits]
}

// joinNeighbours adds a run to those with the key. The file gets its name only when it is
// locked, so that it does not look like one left behind. It replaces none, and need not outlive
// a loss of power, so nothing is synced. Nil: there is no such folder, or no lock.
func joinNeighbours(folder, key string, self neighbour, chance uint64) *neighbours {
	if err := disk.OwnFolder(folder); err != nil {
		return nil
	}
	joined := &neighbours{folder: folder, prefix: keyPrint(key) + "-"}
	joined.name = fmt.Sprintf("%s%d-%08x", joined.prefix, self.PID, chance&0xffffffff)
	unnamed := filepath.Join(folder, "new-"+joined.name)
	joined.lock = flock.New(unnamed, flock.SetFlag(os.O_CREATE|os.O_EXCL|os.O_RDWR|disk.NoFollow), flock.SetPermissions(0o600))
	if locked, err := joined.lock.TryLock(); err != nil || !locked {
		return nil
	}
	text, err := json.Marshal(self)
	if err == nil {
		err = os.WriteFile(unnamed, text, 0o600)
	}
	if err == nil {
		err = os.Rename(unnamed, filepath.Join(folder, joined.name))
	}
	if err != nil {
		_ = os.Remove(unnamed)
		_ = joined.lock.Close()
		return nil
	}
	return joined
}

// serveWith returns the address of a headrace serve on this machine that has the key; "" if there is none.
func serveWith(folder, key string) (address string) {
	if folder == "" || key == "" || disk.CheckFolder(folder) != nil {
		return ""
	}
	for _, other := range (&neighbours{folder: folder, prefix: keyPrint(key) + "-"}).others() {
		if other.Serve != "" {
			return other.Serve
		}
	}
	return ""
}

// others returns the other runs with this key. It removes files of runs that were killed.
func (n *neighbours) others() (all []neighbour) {
	entries, err := os.ReadDir(n.folder)
	if err != nil {
		return nil
	}
	looked := 0
	for _, entry := range entries {
		if entry.Name() == n.name || !strings.HasPrefix(entry.Name(), n.prefix) || !entry.Type().IsRegular() {
			continue
		}
		if looked++; looked > mostNeighbours {
			break
		}
		if other, runs := neighbourAt(filepath.Join(n.folder, entry.Name())); runs {
			all = append(all, other)
		}
	}
	return all
}

// neighbourAt reads the file of a run, and reports whether the run is alive. It removes the file if no
// process holds it.
func neighbourAt(path string) (found neighbour, runs bool) {
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &found) != nil || found.Version == 0 {
		return found, false
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY|disk.NoFollow))
	unlocked, err := lock.TryRLock()
	if err != nil || !unlocked {
		return found, err == nil
	}
	_ = os.Remove(path)
	_ = lock.Close()
	return found, false
}

// leave withdraws this run from the neighbours.
func (n *neighbours) leave() {
	_ = os.Remove(filepath.Join(n.folder, n.name))
	_ = n.lock.Close()
}

// MeetNeighbours warns once if another process on this machine calls with the same key, until leave is
// called. It also makes this run known to others. A failure never stops the run.
func (b *Account) MeetNeighbours(notice func(event.Code, string)) (leave func()) {
	if b.Lanes != nil {
		return b.meetByLanes(notice)
	}
	key := cmp.Or(b.key(), b.Identity())
	if key == "" || b.Runtime == "" || b.flags.Through != "" {
		return func() {}
	}
	joined := joinNeighbours(b.Runtime, key, neighbour{Version: 1, PID: os.Getpid(), Output: b.absoluteOutput(), Serve: b.ServesAt}, b.Chance)
	if joined == nil {
		return func() {}
	}
	joined.shares = b.flags.Share
	if joined.refused = b.refusedAt; joined.notify(notice) {
		return joined.leave
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		joined.watch(b.Clock, over, notice)
	}()
	return func() {
		close(over)
		<-done
		joined.leave()
	}
}

// watch checks for other runs until there is one, and once more at the end.
func (n *neighbours) watch(clock clockwork.Clock, over <-chan struct{}, notice func(event.Code, string)) {
	ticker := clock.NewTicker(neighboursEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.Chan():
		case <-over:
			n.notify(notice)
			return
		}
		if n.notify(notice) {
			return
		}
	}
}

// notify gives the notice if there is another run, and reports whether there was.
func (n *neighbours) notify(notice func(event.Code, string)) (said bool) {
	others := n.others()
	if len(others) == 0 {
		return false
	}
	for _, other := range others {
		if other.Serve != "" && other.Serve != n.refused {
			notice(event.SameKey, n.serveHint(other))
			return true
		}
	}
	text := fmt.Sprintf("process %d calls with the same key, for %s", others[0].PID, others[0].Output)
	if more := len(others) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more do", more)
	}
	notice(event.SameKey, text+": they draw on the same limits, and each may be refused because of the other")
	return true
}

// serveHint says how a run that calls the provider goes through a server with its key. One that looked for a server has
// found none that let it in: it goes on as it began, as the server may end before it.
func (n *neighbours) serveHint(one neighbour) string {
	if n.shares {
		return fmt.Sprintf("headrace serve of process %d, at %s, has the same key, and this run calls the provider: to go through it, stop this run and start it again", one.PID, one.Serve)
	}
	return fmt.Sprintf("headrace serve of process %d has the same key: add --through %s, or --share, and one line paces both", one.PID, one.Serve)
}

// absoluteOutput returns the absolute path of the output, or the address of headrace serve.
func (b *Account) absoluteOutput() string {
	if b.ServesAt != "" {
		return "headrace serve at " + b.ServesAt
	}
	if b.flags.ToStdout() {
		return b.flags.OutputName()
	}
	if full, err := filepath.Abs(b.flags.Output); err == nil {
		return full
	}
	return b.flags.Output
}
