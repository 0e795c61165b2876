package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
)

// A Cluster lets a server call under limits that it shares with jobs, and with servers on other machines. Another main
// brings it.
type Cluster interface {
	// Register registers the flags by which a cluster is reached, --join among them.
	Register(fs *pflag.FlagSet)
	// Check finds values that are wrong by themselves. lanes: the calls go to the lanes of a file.
	Check(fs *pflag.FlagSet, lanes bool) error
	// Limit names the limit that all calls are under; "": they have those of their provider, model and account.
	Limit() string
	// Join reaches the cluster. It waits for a hub that is away, until ctx ends.
	Join(ctx context.Context, s Joining) (Member, error)
}

// Joining is what a server tells a cluster of itself.
type Joining struct {
	Shared      *batch.Shared
	Concurrency int
	Stands      func() (at string, waiting int) // its address, and the requests that wait
	Say         func(string)                    // for people; from any goroutine
}

// A Member is a server in a cluster. Any goroutine may call its methods.
type Member interface {
	exposition.Source
	// Lane returns the settings of a lane whose calls are under a limit of the cluster; c says what is known of it.
	Lane(lane, limit string, c batch.LaneConfig) (batch.LaneConfig, error)
	// Uses says that a request waits for a lane, or is about to, and reports whether its limit is still held.
	Uses(lane string) bool
	// Run holds permits until ctx ends. An error says why the server must end.
	Run(ctx context.Context) error
	// Standing says how it stands: for programs, as JSON, and in rows for people.
	Standing() (forPrograms any, rows []string)
	Close() error
}

// joinFlag is the flag that names the cluster.
const joinFlag = "join"

// registerJoin registers the flags of a cluster. In a build without one, it registers a flag that says where to get
// it.
func registerJoin(fs *pflag.FlagSet, c Cluster) {
	if c != nil {
		c.Register(fs)
		return
	}
	fs.String(joinFlag, "", "keep the limits of a cluster, with its jobs and other servers (the full command only)")
	settings.NameValues(fs, map[string]string{joinFlag: "LINE"})
}

// joinsCluster reports whether the command line names a cluster, and refuses flags that cannot be used in one.
func (f *flags) joinsCluster(fs *pflag.FlagSet, c Cluster, of *settings.Flags) (bool, error) {
	switch {
	case c != nil && !fs.Changed(joinFlag):
		return false, c.Check(fs, of.Fleet != nil)
	case !fs.Changed(joinFlag):
		return false, nil
	case c == nil:
		return false, exit.Refuse("%s", run.NotHere("--"+joinFlag))
	case f.state != "":
		return false, exit.Refuse("--state: the keeper of a cluster keeps what is learned of its limits: remove it, or --%s", joinFlag)
	case of.Law == settings.LawNone:
		return false, exit.Refuse("--law none cannot be used in a cluster, which keeps one limit for all: use model or plain")
	}
	return true, c.Check(fs, of.Fleet != nil)
}

// join joins the cluster, and then holds permits in the background. A signal ends the wait for the cluster; that is
// no error.
func (s *server) join(ctx context.Context, f *settings.Flags) (ended bool, err error) {
	joined, stop := context.WithCancel(ctx)
	s.stopMember = stop
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.member, err = s.cluster.Join(joined, Joining{
			Shared: s.upstream.shared, Concurrency: f.Concurrency, Stands: s.stands,
			Say: func(text string) { s.console.Notice(event.Other, text) },
		})
	}()
	for waits := true; waits; {
		select {
		case <-done:
			waits = false
		case sig := <-s.Signals:
			if sig != syscall.SIGHUP {
				stop()
				<-done
				return true, s.leave()
			}
		}
	}
	if err != nil {
		return false, err
	}
	s.memberDone = make(chan error, 1)
	go func() { s.memberDone <- s.member.Run(joined) }()
	s.upstream.join(s.member, s.cluster.Limit())
	return false, nil
}

// stands returns the address and the number of waiting requests, for others in the cluster.
func (s *server) stands() (at string, waiting int) {
	return s.entrance.url(), s.handler.Waiting()
}

// leave leaves the cluster, once no call is in flight.
func (s *server) leave() (err error) {
	if s.stopMember == nil {
		return nil
	}
	s.stopMember()
	s.stopMember = nil
	if s.memberDone != nil {
		err = <-s.memberDone
	}
	if s.member != nil {
		err = errors.Join(err, s.member.Close())
	}
	return err
}

// endExpelled ends a server that may not stay in its cluster.
func (s *server) endExpelled(why error, shown <-chan time.Time) error {
	s.memberDone <- nil // leave takes it
	return errors.Join(exit.EndOf(exit.Usage, why), s.drainAndClose("its cluster", shown))
}

// clusterView shows a server in its cluster to programs and people. Without a cluster it shows nothing.
type clusterView struct{ s *server }

// Collect shows the member's figures.
func (c clusterView) Collect(to *exposition.Page) {
	if c.s.member != nil {
		c.s.member.Collect(to)
	}
}

func (c clusterView) rows() (rows []string) {
	if c.s.member != nil {
		_, rows = c.s.member.Standing()
	}
	return rows
}

// statusPath leads to the status of the handler.
const statusPath = "/headrace/status"

// serveStatus sends an admin the status with that of the cluster. It reports whether it did, so that the handler can
// answer otherwise.
func (c clusterView) serveStatus(w http.ResponseWriter, r *http.Request) bool {
	if c.s.member == nil || r.URL.Path != statusPath || r.Method != http.MethodGet || !c.s.handler.Admin(r) {
		return false
	}
	st, err := c.s.handler.Status(r.Context())
	if err != nil {
		return false
	}
	whole := struct {
		handler.Status
		Cluster any `json:"cluster"`
	}{Status: st}
	whole.Cluster, _ = c.s.member.Standing()
	text, err := json.Marshal(&whole)
	if err != nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // the client may have gone
	return true
}

// join has lanes get their limits from a cluster, from now on.
func (u *upstream) join(m Member, limit string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.member, u.limits, u.limit = m, map[string]string{}, limit
}

// putUnderLimit puts a lane under a limit of the cluster, unless it is there already. Its caller holds mu.
func (u *upstream) putUnderLimit(lane, limit string, c batch.LaneConfig) error {
	was := u.limits[lane]
	if was == limit && u.member.Uses(lane) {
		return nil
	}
	c, err := u.member.Lane(lane, limit, c)
	if err == nil {
		err = u.shared.Define(lane, c)
	}
	if err == nil && was == limit { // a lane whose limit was forgotten may have stopped, and its law does not know that
		err = u.shared.ResetLane(lane)
	}
	if err != nil {
		return fmt.Errorf("limit %s: %w", limit, err)
	}
	if len(u.limits) >= mostDefined { // of models that came once: those that come again are put under their limits anew
		clear(u.limits)
	}
	u.limits[lane] = limit
	return nil
}
