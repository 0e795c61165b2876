package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

// control carries out what headrace ctl asks of the server. Its own server calls Do, one command at a time.
type control struct {
	*server

	flags        *settings.Flags // as the process was started
	concurrency  int
	commonLimits batch.Limits            // of the lanes that have none of their own
	laneLimits   map[string]batch.Limits // by lane
}

// listenToCtl begins to listen, under the address and under the file of --state. A server that cannot goes on without.
func (s *server) listenToCtl(f *settings.Flags) *ctl.Server {
	c := &control{server: s, flags: f, concurrency: f.Concurrency, commonLimits: f.Limits(), laneLimits: map[string]batch.Limits{}}
	of := []string{ctl.OfAddress(s.entrance.url())}
	if s.own.state != "" {
		if name, err := ctl.OfFile(s.own.state); err == nil {
			of = append(of, name)
		}
	}
	listens, err := ctl.Serve(s.Runtime, c, of...)
	if err != nil {
		s.log.Info("no control by headrace ctl", "error", err)
		return nil
	}
	return listens
}

// Do carries a command out.
func (c *control) Do(ctx context.Context, cmd ctl.Command) (a ctl.Answer, err error) {
	shared := c.upstream.shared
	if c.member != nil && (cmd.Word == ctl.Limit || cmd.Word == ctl.Reset) {
		return a, fmt.Errorf("%s: the keeper of the cluster has the limits: headrace limits set and reset change them for all", cmd.Word)
	}
	switch cmd.Word {
	case ctl.Status:
		st, err := c.handler.Status(ctx)
		if err != nil {
			return a, err
		}
		rows := slices.Concat([]string{c.title()}, clusterView{c.server}.rows(), rowsOf(&st))
		return ctl.Answer{Text: strings.Join(rows, "\n"), Status: st}, nil
	case ctl.Drain:
		select {
		case c.ctlDrain <- struct{}{}:
		default: // it ends already
		}
		a.Text = c.reportChange("state", "", "running", "draining")
	case ctl.Concurrency:
		if err := checkConcurrency(cmd.N, world.OpenFiles()); err != nil {
			return a, err
		}
		if err := shared.SetConcurrency(cmd.N); err != nil {
			return a, err
		}
		a.Text = c.reportChange("concurrency", "", strconv.Itoa(c.concurrency), strconv.Itoa(cmd.N))
		c.concurrency = cmd.N
	case ctl.Limit:
		a.Text, err = c.setLimits(ctx, &cmd)
	case ctl.Reset:
		if cmd.Lane, err = c.usedLane(ctx, cmd.Lane); err != nil {
			return a, err
		}
		if err := shared.ResetLane(cmd.Lane); err != nil {
			return a, err
		}
		a.Text = c.reportChange("reset", cmd.Lane, "", "afresh")
	case ctl.LogLevel:
		level := c.flags.Leveler()
		from := level.Level()
		level.Set(cmd.Level)
		a.Text = c.reportChange("log-level", "", strings.ToLower(from.String()), strings.ToLower(cmd.Level.String()))
	case ctl.MaxCost:
		err = errors.New("max-cost: headrace serve takes it at its start only")
	case ctl.Pause, ctl.Resume:
		err = fmt.Errorf("%s: headrace serve cannot, as its clients would wait in vain: lower its concurrency, or drain it", cmd.Word)
	case ctl.Report:
		if err = errors.New("only headrace serve with --state has a report"); c.own.state != "" {
			err = fmt.Errorf("headrace report %s makes the report", settings.ShellQuote(c.own.state))
		}
	default:
		err = fmt.Errorf("%s: headrace serve cannot do that", cmd.Word)
	}
	return a, err
}

// checkConcurrency refuses more calls than files may be open for.
func checkConcurrency(calls int, files uint64) error {
	if most := account.CallsWithin(files, calls); most < calls {
		return fmt.Errorf("concurrency %d is too much here: at most %d files may be open: want 1 to %d (ulimit -n raises it)", calls, files, most)
	}
	return nil
}

// reportChange shows and logs a change, and returns it in words.
func (c *control) reportChange(what, lane, from, to string) string {
	e := event.Changed{What: what, Lane: lane, From: from, To: to, By: "ctl"}
	if e.IsNone() {
		return e.Say()
	}
	c.console.Notice(event.Other, "changed: "+e.Say())
	c.log.Info("changed by ctl", "what", what, "lane", lane, "from", from, "to", to)
	text, _ := strings.CutSuffix(e.Say(), ", by headrace ctl")
	return text
}

// setLimits sets the limits of one lane, or of all lanes of a server without a file of lanes.
func (c *control) setLimits(ctx context.Context, cmd *ctl.Command) (string, error) {
	if c.flags.Law == settings.LawNone {
		return "", errors.New("limit: with --law none there is no limit but the concurrency")
	}
	if cmd.Lane == "" && c.flags.Fleet == nil {
		from, to := c.commonLimits, cmd.On(c.commonLimits)
		if err := c.upstream.shared.SetLimitsOfAll(to); err != nil {
			return "", err
		}
		was := ctl.AllWords(from, c.laneLimits)
		c.commonLimits, c.laneLimits = to, map[string]batch.Limits{}
		return c.reportChange("limits", "", was, ctl.LimitWords(to)), nil
	}
	var err error
	if cmd.Lane, err = c.usedLane(ctx, cmd.Lane); err != nil {
		return "", err
	}
	from, known := c.laneLimits[cmd.Lane]
	if !known {
		from = c.startLimits(cmd.Lane)
	}
	to := cmd.On(from)
	if err := c.upstream.shared.SetLimits(cmd.Lane, to); err != nil {
		return "", err
	}
	c.laneLimits[cmd.Lane] = to
	return c.reportChange("limits", cmd.Lane, ctl.LimitWords(from), ctl.LimitWords(to)), nil
}

// startLimits returns the limits that the flags gave a lane at the start.
func (c *control) startLimits(lane string) batch.Limits {
	if c.flags.Fleet != nil {
		name, _, _ := strings.Cut(lane, "/")
		for i := range c.flags.Fleet.Lanes {
			if of := &c.flags.Fleet.Lanes[i]; of.Name == name || of.Quota == lane {
				return of.Flags.Limits()
			}
		}
	}
	return c.commonLimits
}

// usedLane returns the lane of that name, and refuses one that no request has used. An empty name means the only
// lane.
func (c *control) usedLane(ctx context.Context, lane string) (string, error) {
	st, err := c.handler.Status(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, l := range st.Lanes {
		names = append(names, l.Name)
	}
	switch {
	case slices.Contains(names, lane):
		return lane, nil
	case len(names) == 0:
		return "", errors.New("no request has used a lane yet")
	case lane == "" && len(names) == 1:
		return names[0], nil
	}
	return "", fmt.Errorf("lane %q is not in use: want %s", lane, strings.Join(names, ", "))
}
