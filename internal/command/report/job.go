package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// A Job holds what a cluster knows of a job besides its lines. A report of the job shows it in addition to what it shows of a run.
type Job struct {
	Name     string      `json:"name"`
	State    string      `json:"state"`
	Why      string      `json:"why,omitempty"` // the job has stopped, or was refused
	Round    int         `json:"round"`         // 0; one more with each retry of failed items
	Parts    int         `json:"parts"`         // of this round, those that are done
	OfParts  int         `json:"of_parts"`
	Ended    int         `json:"ended"`             // items, with those of parts under way as workers report them; 0: nobody was heard
	InFlight int         `json:"in_flight"`         // calls, now
	HeldBy   string      `json:"held_by,omitempty"` // now; "": nobody works on it
	Keeper   string      `json:"keeper,omitempty"`
	Workers  []JobWorker `json:"workers,omitempty"`
	// OfWorkers and OfLimits count all: more than mostLanes are not listed.
	OfWorkers int        `json:"of_workers"`
	Limits    []JobLimit `json:"limits,omitempty"`
	OfLimits  int        `json:"of_limits"`

	// GoesOn tells a job under way from one that has ended, and Whole one whose store has each line of its input. Next is
	// the command that goes on with it.
	GoesOn bool   `json:"-"`
	Whole  bool   `json:"-"`
	Next   string `json:"-"`

	Input    string          `json:"-"`
	Output   string          `json:"-"`
	Errors   string          `json:"-"`
	Provider string          `json:"-"`
	Items    *int            `json:"-"` // nil: its input has not been read
	CapUSD   *float64        `json:"-"` // nil: it has none
	Settings []event.Setting `json:"-"`
}

// JobWorker is a worker, by its own report. All but InFlight and CannotWork is for all its jobs, since it began.
type JobWorker struct {
	Name        string `json:"name"`
	InFlight    int    `json:"in_flight"` // for this job
	Concurrency int    `json:"concurrency"`
	Items       int    `json:"items"`
	Calls       int    `json:"calls"`
	Refused     int    `json:"refused"`
	CannotWork  string `json:"cannot_work,omitempty"` // on this job, and why
}

// JobLimit is a limit that a job uses, with what the keeper knows of it.
type JobLimit struct {
	Name   string `json:"name"`
	Phase  string `json:"phase"`
	Pace   string `json:"pace"` // calls a second
	HeldBy string `json:"held_by"`
	Known  string `json:"known"`
}

// OfJob makes the report of a job from the lines of its finished parts. lines passes each to take, and the report keeps none.
func OfJob(w *world.World, j *Job, lines func(take func(text []byte) error) error) (*Report, error) {
	return newJobReport(j, lines, w.Clock.Now(), time.Local, account.Version())
}

// newJobReport makes the report of a job. lines passes each finished line to its argument; madeBy is the
// version of this program.
func newJobReport(job *Job, lines func(take func(text []byte) error) error, now time.Time, zone *time.Location, madeBy string) (*Report, error) {
	report := &Report{
		Report: version, Headrace: madeBy, At: event.Stamp(now), State: Ended, Input: job.Input, Output: job.Output, Errors: job.Errors, Provider: job.Provider, Job: job, zone: zone,
		Settings: job.Settings[:min(len(job.Settings), mostSettings)],
	}
	if job.GoesOn {
		report.State = Running
	}
	items := newTallies()
	counter := journal.NewCounter(items.add)
	if err := lines(counter.Add); err != nil {
		return nil, err
	}
	job.shorten()
	report.addItems(counter.Progress(), items)
	report.addSpent(counter.Progress())
	report.Spent.CapUSD = job.CapUSD
	if job.Items != nil && *job.Items >= report.Done+report.Failed { // lines that were skipped are failures, and no items
		report.Items = job.Items
	}
	if job.Whole {
		holds := true
		report.Proved, report.Proof = &holds, []string{fmt.Sprintf("each line of the input has one result or one failure: %s, in %s", words.Count(report.Done+report.Failed, "line"), words.Count(job.OfParts, "part"))}
	}
	report.Verdict = report.verdict()
	return report, nil
}

// shorten cuts lists and texts of others to a length that people read.
func (j *Job) shorten() {
	j.Why, j.OfWorkers, j.OfLimits = words.Clip(j.Why, maxMessage), len(j.Workers), len(j.Limits)
	j.Workers, j.Limits = j.Workers[:min(len(j.Workers), mostLanes)], j.Limits[:min(len(j.Limits), mostLanes)]
	for k := range j.Workers {
		w := &j.Workers[k]
		w.Name, w.CannotWork = words.Clip(w.Name, maxName), words.Clip(w.CannotWork, maxMessage)
	}
	for k := range j.Limits {
		l := &j.Limits[k]
		l.Name, l.Known = words.Clip(l.Name, maxName), words.Clip(l.Known, maxMessage)
	}
}

// stateWords describes the state of the job, and what a cluster does not keep of it.
func (j *Job) stateWords() string {
	text := "The job is " + j.State + "."
	if j.GoesOn {
		text = fmt.Sprintf("The job is %s: these are the figures of its finished parts, %s of %s.", j.State, words.Number(j.Parts), words.Number(j.OfParts))
	}
	if j.Round > 0 {
		text += fmt.Sprintf(" Its failed items were tried again: this is round %s.", words.Number(j.Round))
	}
	if j.Why != "" {
		text += " Why: " + strings.TrimSuffix(j.Why, ".") + "."
	}
	if j.Next != "" {
		text += " To go on: " + j.Next + "."
	}
	return text + " A cluster keeps no timeline of a job: there are no plots, and no times and calls of the whole job."
}

// cardsOfJob returns the cards of a job that differ from those of a run: its parts and its proof.
func (j *Job) cardsOfJob(proved *bool) (first, proof card) {
	first = card{"parts", fmt.Sprintf("%s of %s done", words.Number(j.Parts), words.Number(j.OfParts)), ""}
	switch {
	case j.OfParts == 0:
		first = card{"parts", "not known", "the input has not been read"}
	case j.GoesOn:
		first.note = words.Count(j.InFlight, "call") + " in flight"
		if j.Ended > 0 {
			first.note += "; with parts under way " + words.Count(j.Ended, "item") + " ended"
		}
	}
	switch {
	case proved != nil:
		proof = card{"proof", "holds ✓", "nothing lost, nothing bought twice"}
	case j.GoesOn:
		proof = card{"proof", "not yet", "a job proves at its end that it has lost nothing"}
	default:
		proof = card{"proof", "none", "not every line has ended; nothing that was saved is bought again"}
	}
	return first, proof
}

// advice says what to do about the failures of a job.
func (j *Job) advice() [][2]string {
	fetch, again := "headrace jobs fetch "+settings.ShellQuote(j.Name), "To ask them again: "
	if j.State != "done" {
		fetch, again = fetch+" --partial", "To ask them again, once it is done: "
	}
	return [][2]string{{"All of them, in the errors file that this makes: ", fetch}, {again, "headrace jobs retry-failed " + settings.ShellQuote(j.Name)}}
}

// sheet is a table of a job, for each form of the report.
type sheet struct {
	title, note string
	heads       []string
	rows        [][]string
}

// sheets returns the tables that only a report of a job has.
func (j *Job) sheets() (all []sheet) {
	if len(j.Limits) > 0 {
		s := sheet{title: "Limits", heads: []string{"limit", "state", "calls/s", "held back by", "known"}}
		for _, l := range j.Limits {
			s.rows = append(s.rows, []string{l.Name, l.Phase, l.Pace, l.HeldBy, l.Known})
		}
		s.noteMore(j.OfLimits, "more limit")
		all = append(all, s)
	}
	if !j.GoesOn {
		return all
	}
	s := sheet{title: "Workers", note: "Now held back by: " + cmp.Or(j.HeldBy, "not known") + ".", heads: []string{"worker", "in flight", "of", "items", "calls", "refused", "state"}}
	for k := range j.Workers {
		w := &j.Workers[k]
		s.rows = append(s.rows, []string{w.Name, words.Number(w.InFlight), words.Number(w.Concurrency), words.Number(w.Items), words.Number(w.Calls), words.Number(w.Refused), cmp.Or(w.CannotWork, "works")})
	}
	if len(j.Workers) == 0 {
		s.note += " No worker was heard."
	} else {
		s.note += " Items, calls and refusals of a worker are those of all its jobs, since it began."
	}
	s.noteMore(j.OfWorkers, "more worker")
	return append(all, s)
}

// noteMore notes how many rows are left out.
func (s *sheet) noteMore(total int, what string) {
	if left := total - len(s.rows); left > 0 {
		s.note = strings.TrimSpace(s.note + " And " + words.Count(left, what) + ".")
	}
}

// writeSheets writes the tables of a job.
func (p *page) writeSheets() {
	if p.Job == nil {
		return
	}
	for _, s := range p.Job.sheets() {
		p.printf("<h2>%s</h2>\n", s.title)
		if len(s.rows) > 0 {
			heads := make([]any, len(s.heads))
			for k, h := range s.heads {
				heads[k] = text(h)
			}
			t := p.beginTable(heads...)
			for _, row := range s.rows {
				cells := make([]any, len(row))
				for k, c := range row {
					cells[k] = text(c)
				}
				t.row(cells...)
			}
			t.end()
		}
		if s.note != "" {
			p.printf("<p>%s</p>\n", s.note)
		}
	}
}

// writeMarkdown writes the tables of a job as Markdown, by the functions of the report around them.
func (j *Job) writeMarkdown(line func(format string, args ...any), table, cells func(texts ...string)) {
	if j == nil {
		return
	}
	for _, s := range j.sheets() {
		line("\n### %s", s.title)
		if len(s.rows) > 0 {
			table(s.heads...)
		}
		for _, row := range s.rows {
			cells(row...)
		}
		if s.note != "" {
			line("\n%s", printable.Markdown(s.note))
		}
	}
}
