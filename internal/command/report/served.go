package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/report/chart"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/observe"
)

// Served holds the figures of one process of headrace serve. Programs read it as JSON.
type Served struct {
	Report    string         `json:"headrace_report"` // the version of its form
	Of        string         `json:"of"`              // ofServe
	Headrace  string         `json:"headrace"`
	At        string         `json:"at"`
	State     State          `json:"state"`
	Began     string         `json:"began"`
	UpS       float64        `json:"up_s"`
	Provider  string         `json:"provider"`
	Simulated bool           `json:"simulated"` // no provider was asked
	Waiting   int            `json:"waiting"`
	InFlight  int            `json:"in_flight"`
	All       Tally          `json:"all"`
	Clients   []Tally        `json:"clients"`
	Classes   []Tally        `json:"classes"`
	Lanes     []Tally        `json:"lanes"`
	Refusals  []Refusal      `json:"refusals"` // by headrace
	Samples   []ServedSample `json:"samples"`

	zone *time.Location
}

// ofServe tells the report of a server from that of an output.
const ofServe = "serve"

// Tally counts requests by what became of them. Times are of requests for which a call was made.
type Tally struct {
	Name      string  `json:"name,omitempty"`
	Answered  int     `json:"answered"`
	Refused   int     `json:"refused"` // by headrace
	Failed    int     `json:"failed"`  // by the provider
	Gone      int     `json:"gone"`    // the client went away
	WaitP50S  float64 `json:"wait_p50_s"`
	WaitP95S  float64 `json:"wait_p95_s"`
	FirstP50S float64 `json:"first_byte_p50_s"`
	FirstP95S float64 `json:"first_byte_p95_s"`
	USD       float64 `json:"usd"`
	Priced    int     `json:"priced"`
	Unpriced  int     `json:"unpriced"`
}

// Requests returns how many there were.
func (t *Tally) Requests() int { return t.Answered + t.Refused + t.Failed + t.Gone }

// Refusal is a reason for which headrace refused requests.
type Refusal struct {
	Code     string `json:"code"`
	Requests int    `json:"requests"`
}

// ServedSample describes a span of the time of a server.
type ServedSample struct {
	At       string   `json:"at"` // its end
	SpanS    float64  `json:"span_s"`
	Answered int      `json:"answered,omitempty"`
	Refused  int      `json:"refused,omitempty"`
	Failed   int      `json:"failed,omitempty"`
	Waiting  float64  `json:"waiting,omitempty"` // mean
	InFlight float64  `json:"in_flight,omitempty"`
	Most     int      `json:"in_flight_most,omitempty"`
	USD      float64  `json:"usd,omitempty"`
	Waits    [][2]int `json:"waits,omitempty"` // buckets of observe.Buckets, and how many waited so long
}

func servedSample(one observe.Sample) ServedSample {
	s := ServedSample{
		At: event.Stamp(one.At), SpanS: event.Round(one.Span), Answered: one.Answered, Refused: one.Throttled, Failed: one.Failed, Waiting: event.Round(one.Waiting),
		InFlight: event.Round(one.InFlight), Most: one.InFlightMost, USD: event.RoundUSD(one.USD),
	}
	for _, b := range one.Latency {
		s.Waits = append(s.Waits, [2]int{b.Number, b.Count})
	}
	return s
}

func (s *ServedSample) sample() observe.Sample {
	at, _ := time.Parse(time.RFC3339Nano, s.At) // a file of ours has one
	one := observe.Sample{At: at, Span: s.SpanS, Answered: s.Answered, Failed: s.Failed, Throttled: s.Refused, Waiting: s.Waiting, InFlight: s.InFlight, InFlightMost: s.Most, USD: s.USD}
	for _, w := range s.Waits {
		one.Latency = append(one.Latency, observe.Bucket{Number: w[0], Count: w[1]})
	}
	return one
}

// ServedPath returns the file in which a server keeps its figures, next to its --state.
func ServedPath(state string) string { return strings.TrimSuffix(state, ".json") + ".report.json" }

// stateMark begins each file of --state.
const stateMark = `{"headrace_state":`

// servedOf reads the figures of a server, if the file is its state or they themselves; nil: it is another file.
func servedOf(file string, now time.Time) (*Served, error) {
	if !begins(file, stateMark) && !begins(file, jsonMark) {
		return nil, nil //nolint:nilnil // it is none
	}
	if begins(file, stateMark) {
		file = ServedPath(file)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Refuse("%s: there is no such file: headrace serve --state keeps its figures there; for a run, name its output", file)
	}
	r := &Served{zone: time.Local}
	if err != nil || json.Unmarshal(text, r) != nil || r.Of != ofServe {
		return nil, exit.Refuse("%s: it holds no figures of headrace serve: name the file of its --state", file)
	}
	if at, err := time.Parse(time.RFC3339Nano, r.At); r.State == Running && err == nil && now.Sub(at) > killedAfter {
		r.State = Killed
	}
	return r, nil
}

// ServedEvery is the period in which a server writes its figures: a kill costs no more of them.
const ServedEvery = 15 * time.Second

// killedAfter is the age of the figures of a server that does not write them any more.
const killedAfter = 4 * ServedEvery

func begins(file, with string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	text := make([]byte, len(with))
	n, _ := f.Read(text)
	return bytes.Equal(text[:n], []byte(with))
}

// CheckServed refuses a --state for which no figures can be written.
func CheckServed(state string) error {
	if err := disk.Inspect(ServedPath(state), disk.Marked(jsonMark)); err != nil {
		return exit.Refuse("--state: %s", exit.PlainText(err))
	}
	return nil
}

// Write writes the figures, next to the state.
func (r *Served) Write(state string) error {
	return disk.Real().Unsynced().Write(ServedPath(state), r.JSON(), fileMode)
}

// JSON returns the figures.
func (r *Served) JSON() []byte {
	text, _ := json.MarshalIndent(r, "", "  ") // numbers are finite, and all else is text
	return append(printable.JSON(text), '\n')
}

// verdict says in a sentence what became of the requests.
func (r *Served) verdict() string {
	text := words.Count(r.All.Answered, "request") + " answered"
	for _, more := range []struct {
		n    int
		what string
	}{{r.All.Refused, "refused"}, {r.All.Failed, "failed"}, {r.All.Gone, "given up by their clients"}} {
		if more.n > 0 {
			text += ", " + words.Number(more.n) + " " + more.what
		}
	}
	return text
}

// subtitle says which server it was.
func (r *Served) subtitle() string {
	text := "headrace serve"
	if r.Provider != "" {
		text += ", " + r.Provider
	}
	of := Report{zone: r.zone}
	return text + ", " + of.at(r.Began) + " to " + of.at(r.At)
}

// note says what is unusual.
func (r *Served) note() string {
	switch r.State {
	case Running:
		return "The server goes on: these are the figures so far."
	case Killed:
		return "The server was killed, or its machine went down: these are its last figures."
	}
	return ""
}

func (r *Served) cardList() []card {
	cost := card{"cost", r.cost(&r.All), ""}
	if r.All.Unpriced > 0 && !r.Simulated {
		cost.more = words.Unpriced(r.All.Unpriced) + " not counted"
	}
	return []card{
		{"up", lasted(r.UpS), "since it began"},
		{"now", words.Number(r.Waiting) + " waiting", words.Number(r.InFlight) + " in flight"},
		{"a request waited", lasted(r.All.WaitP50S), "in the middle; 95 of 100 at most " + lasted(r.All.WaitP95S)},
		cost,
	}
}

// cost says in few words what requests have cost.
func (r *Served) cost(of *Tally) string {
	switch {
	case r.Simulated:
		return "none (simulated)"
	case of.Priced == 0 && of.Unpriced > 0:
		return "unknown"
	case of.Unpriced > 0:
		return "at least " + words.Money(of.USD)
	}
	return words.Money(of.USD)
}

// HTML returns the report as a page.
func (r *Served) HTML() string {
	p := &page{Report: &Report{}}
	p.begin("serve")
	p.served(r, r.note(), "")
	p.end(r.Headrace, r.At)
	return p.String()
}

// Live returns the title of the live page, and what stands in it. held says what holds requests back now; "": nothing.
func (r *Served) Live(held string) (title, body string) {
	p, note := &page{Report: &Report{}, pointed: true}, ""
	if r.State == Ended {
		note = "The server has ended: this is its last state."
	}
	p.served(r, note, held)
	p.put(`<p class="sub">headrace %s, as of %s</p>`+"\n", r.Headrace, r.plain().at(r.At))
	return r.verdict(), p.String()
}

// plain returns a report that knows only the zone, and the past of the server.
func (r *Served) plain() *Report {
	of := &Report{zone: r.zone}
	run := timeline.Run{}
	run.At, _ = time.Parse(time.RFC3339Nano, r.Began)
	for k := range r.Samples {
		run.Samples = append(run.Samples, r.Samples[k].sample())
	}
	of.runs = []timeline.Run{run}
	return of
}

// served writes what stands in the page of a server.
func (p *page) served(r *Served, note, held string) {
	p.put("<h1>%s</h1>\n<p class=\"sub\">%s</p>\n", r.verdict(), r.subtitle())
	if note != "" {
		p.put(`<p class="note"><strong>%s</strong></p>`+"\n", note)
	}
	p.cards(r.cardList())
	if held != "" {
		p.put("<p>Held by: <strong>%s</strong></p>\n", held)
	}
	of := r.plain()
	if plots := newPlots(of, mostPoints); plots != nil {
		p.put("<h2>Over time</h2>\n")
		p.moments(of, plots)
		p.figures(plots.ofServer(of))
		p.servedRows(of)
	}
	for _, t := range r.tables() {
		p.put("<h2>%s</h2>\n", t.title)
		to := p.table(anyOf(t.heads)...)
		for _, row := range t.rows {
			to.row(anyOf(row)...)
		}
		to.end()
	}
}

func anyOf(texts []string) (list []any) {
	for _, t := range texts {
		list = append(list, t)
	}
	return list
}

// ofServer paints the plots of a server.
func (p *plots) ofServer(r *Report) []figure {
	list := []figure{
		p.figure("Requests a second", "answered, and those that were refused or failed", shortNumber,
			named{p.series(chart.Area, func(s *observe.Sample) float64 { return per(float64(s.Answered), s.Span, 1) }), "answered"},
			named{p.series(chart.Second, func(s *observe.Sample) float64 { return per(float64(s.Failed), s.Span, 1) }), "failed or given up"},
			named{p.series(chart.Rug, func(s *observe.Sample) float64 { return float64(s.Throttled) }), "refused by headrace"}),
		p.figure("Requests that wait", "in the mean", shortNumber, named{p.series(chart.Area, func(s *observe.Sample) float64 { return s.Waiting }), "waiting"}),
		p.figure("Calls in flight", fmt.Sprintf("at most %s at once", words.Number(p.most())), shortNumber,
			named{p.series(chart.Area, func(s *observe.Sample) float64 { return s.InFlight }), "mean"},
			named{p.series(chart.Second, func(s *observe.Sample) float64 { return float64(s.InFlightMost) }), "most"}),
		p.figure("How long a request waited", p.latencyWords(), func(v float64) string { return shortNumber(v) + " s" },
			named{p.series(chart.Line, quantile(0.5)), "p50"}, named{p.series(chart.Second, quantile(0.95)), "p95"}),
	}
	if f := p.cost(r); f != nil {
		list = append(list, *f)
	}
	return list
}

// servedRows says the same as the plots, for those who cannot see them.
func (p *page) servedRows(of *Report) {
	few := newPlots(of, mostRows)
	p.put(`<details><summary>The plots as a table</summary>`)
	t := p.table("from", "answered/s", "waiting", "in flight", "p50 s", "p95 s", "refused", "failed", "cost")
	for k := range few.samples[:min(len(few.samples), mostRows)] {
		s := &few.samples[k]
		t.row(of.moment(few.spans[k].From), orDash(per(float64(s.Answered), s.Span, 1)), trimmed(math.Round(s.Waiting*10)/10), trimmed(s.InFlight), orDash(quantile(0.5)(s)), orDash(quantile(0.95)(s)),
			words.Number(s.Throttled), words.Number(s.Failed), words.Money(s.USD))
	}
	t.end()
	p.put("</details>\n")
}

// grid is a table of a report of a server.
type grid struct {
	title string
	heads []string
	rows  [][]string
}

func (r *Served) tables() (list []grid) {
	for _, of := range []struct {
		title, head string
		rows        []Tally
	}{{"Classes", "class", r.Classes}, {"Clients", "client", r.Clients}, {"Lanes", "lane", r.Lanes}} {
		g := grid{of.title, []string{of.head, "answered", "refused", "failed", "gone", "wait p50", "wait p95", "first byte p50", "first byte p95", "cost"}, nil}
		for i := range of.rows {
			t := &of.rows[i]
			g.rows = append(g.rows, []string{
				t.Name, words.Number(t.Answered), words.Number(t.Refused), words.Number(t.Failed), words.Number(t.Gone), lasted(t.WaitP50S), lasted(t.WaitP95S), lasted(t.FirstP50S), lasted(t.FirstP95S),
				r.cost(t),
			})
		}
		if len(g.rows) > 0 {
			list = append(list, g)
		}
	}
	if len(r.Refusals) > 0 {
		g := grid{"Refused by headrace", []string{"code", "requests"}, nil}
		for _, f := range r.Refusals {
			g.rows = append(g.rows, []string{f.Code, words.Number(f.Requests)})
		}
		list = append(list, g)
	}
	return list
}

// Markdown returns the report as text.
func (r *Served) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s## %s\n\n%s\n", markdownMark, printable.Markdown(r.verdict()), printable.Markdown(r.subtitle()))
	if text := r.note(); text != "" {
		fmt.Fprintf(&b, "\n**%s**\n", text)
	}
	cells := func(texts []string) {
		b.WriteString("|")
		for _, t := range texts {
			b.WriteString(" " + printable.Markdown(t) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| | | |\n|---|---|---|\n")
	for _, c := range r.cardList() {
		cells([]string{c.name, c.value, c.more})
	}
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n", t.title)
		cells(t.heads)
		b.WriteString("|" + strings.Repeat("---|", len(t.heads)) + "\n")
		for _, row := range t.rows {
			cells(row)
		}
	}
	return b.String()
}
