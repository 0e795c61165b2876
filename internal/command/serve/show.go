package serve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// lineEvery is the period of plain lines: the log of a server is read days later.
const lineEvery = time.Minute

// manner returns how to show the server, and how often: a panel on a terminal, lines elsewhere.
func (s *server) manner(f *settings.Flags) (m progress.Manner, every time.Duration, err error) {
	switch f.Progress {
	case settings.ProgressJSON, settings.ProgressBar:
		return m, 0, exit.Refuse("--progress %s: serve has auto, panel, plain and none; its figures are at /headrace/status", f.Progress)
	case settings.ProgressNone:
		m = progress.Silent(s.Stderr)
		return m, m.Every(), nil
	case settings.ProgressAuto, settings.ProgressPanel:
		if s.Terminal.Size != nil {
			s.style = f.Style(s.Env)
			m = progress.Panel(s.NewScreen(s.style), nil)
			return m, m.Every(), nil
		}
	}
	return progress.Plain(s.Stderr), lineEvery, nil
}

// show shows how the server stands. Without a terminal it does not repeat a line.
func (s *server) show(ctx context.Context) {
	st, err := s.handler.Status(ctx)
	if err != nil {
		return // it is closing
	}
	line := lineOf(&st)
	if s.Terminal.Size == nil && line == s.lastLine {
		return
	}
	s.lastLine = line
	rows := slices.Concat([]string{s.title()}, clusterView{s}.rows(), rowsOf(&st))
	style := s.style
	s.console.ShowRows(func(width, height int) (fitting []string) {
		for _, row := range rows[:min(len(rows), panel.MostRows, max(0, height))] {
			fitting = append(fitting, style.Clip(row, max(0, width-1)))
		}
		return fitting
	}, line)
}

// title says which server it is, and since when.
func (s *server) title() string {
	name := "headrace serve"
	if s.draining {
		name += "  draining"
	}
	return fmt.Sprintf("%s  %s  %s  up %s", name, s.entrance.url(), s.upstream.name(), words.Wait(s.Clock.Since(s.began).Truncate(time.Second)))
}

// rowsOf returns the rows of the panel below its title.
func rowsOf(st *handler.Status) []string {
	rows := []string{
		"Waiting   " + words.Number(st.Waiting) + waitingByClass(st),
		fmt.Sprintf("Calls     %s in flight, %s ended, %s refused by the provider",
			words.Number(st.InFlight), words.Number(int(st.Totals.Settled)), words.Number(int(st.Totals.Throttled))),
	}
	if st.SpentUSD > 0 {
		rows = append(rows, "Spent     "+words.Money(st.SpentUSD))
	}
	if held := heldBy(st); held != "" {
		rows = append(rows, "Held by   "+held)
	}
	clients := slices.Clone(st.Clients)
	slices.SortStableFunc(clients, func(a, b handler.ClientStatus) int { return b.Waiting + b.InFlight - a.Waiting - a.InFlight })
	name := "Clients   "
	for _, c := range clients[:min(len(clients), mostClientRows)] {
		rows = append(rows, fmt.Sprintf("%s%s: %s waiting, %s in flight", name, c.Name, words.Number(c.Waiting), words.Number(c.InFlight)))
		name = "          "
	}
	if more := len(clients) - mostClientRows; more > 0 {
		rows = append(rows, fmt.Sprintf("%sand %s", name, words.Count(more, "more client")))
	}
	return rows
}

// mostClientRows is the number of clients that the panel lists: those with the most requests. All rows
// together fit into the panel.
const mostClientRows = 4

// waitingByClass counts the waiting requests of each class, in brackets; "" if none wait.
func waitingByClass(st *handler.Status) string {
	var parts []string
	for _, class := range door.Classes {
		if n := st.Classes[class]; n > 0 {
			parts = append(parts, words.Number(n)+" "+class)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// heldBy returns what holds the busiest lane back, while requests wait; "" if nothing does.
func heldBy(st *handler.Status) string {
	if st.Waiting == 0 {
		return ""
	}
	for i := range st.Machine.Lanes {
		l := &st.Machine.Lanes[i]
		switch {
		case l.Bound == limiter.BoundNone:
			continue
		case l.Wait >= time.Second:
			return fmt.Sprintf("%v of %s, for %s", l.Bound, l.Name, words.Wait(l.Wait))
		case l.View.Rate > 0 && !math.IsInf(l.View.Rate, 1):
			return fmt.Sprintf("%v of %s: about %s calls a minute", l.Bound, l.Name, words.Thousands(math.Round(60*l.View.Rate)))
		}
		return fmt.Sprintf("%v of %s", l.Bound, l.Name)
	}
	return ""
}

// lineOf says in a line how the server stands.
func lineOf(st *handler.Status) string {
	line := fmt.Sprintf("headrace: %s waiting%s, %s in flight, %s ended",
		words.Number(st.Waiting), waitingByClass(st), words.Number(st.InFlight), words.Number(int(st.Totals.Settled)))
	if held := heldBy(st); held != "" {
		line += "; held by " + held
	}
	return line
}
