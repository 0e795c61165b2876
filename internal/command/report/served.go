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

// toServedSample returns a sample in the form of the file.
func toServedSample(sample observe.Sample) ServedSample {
	s := ServedSample{
		At: event.Stamp(sample.At), SpanS: event.Round(sample.Span), Answered: sample.Answered, Refused: sample.Throttled, Failed: sample.Failed, Waiting: event.Round(sample.Waiting),
		InFlight: event.Round(sample.InFlight), Most: sample.InFlightMost, USD: event.RoundUSD(sample.USD),
	}
	for _, b := range sample.Latency {
		s.Waits = append(s.Waits, [2]int{b.Number, b.Count})
	}
	return s
}

// toSample returns the sample as the plots need it.
func (s *ServedSample) toSample() observe.Sample {
	at, _ := time.Parse(time.RFC3339Nano, s.At) // a file of ours has one
	sample := observe.Sample{At: at, Span: s.SpanS, Answered: s.Answered, Failed: s.Failed, Throttled: s.Refused, Waiting: s.Waiting, InFlight: s.InFlight, InFlightMost: s.Most, USD: s.USD}
	for _, w := range s.Waits {
		sample.Latency = append(sample.Latency, observe.Bucket{Number: w[0], Count: w[1]})
	}
	return sample
}

// ServedPath returns the file in which a server keeps its figures, next to its --state.
func ServedPath(state string) string { return strings.TrimSuffix(state, ".json") + ".report.json" }

// stateMark begins each file of --state.
const stateMark = `{"headrace_state":`

// readServed reads the figures of a server, from the file of its state or from the figures' own file. It
// returns nil for any other file.
func readServed(file string, now time.Time) (*Served, error) {
	if !fileBeginsWith(file, stateMark) && !fileBeginsWith(file, jsonMark) {
		return nil, nil //nolint:nilnil // it is none
	}
	if fileBeginsWith(file, stateMark) {
		file = ServedPath(file)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Refuse("%s: there is no such file: headrace serve --state keeps its figures there; for a run, name its output", file)
	}
	served := &Served{zone: time.Local}
	if err != nil || json.Unmarshal(text, served) != nil || served.Of != ofServe {
		return nil, exit.Refuse("%s: it holds no figures of headrace serve: name the file of its --state", file)
	}
	if at, err := time.Parse(time.RFC3339Nano, served.At); served.State == Running && err == nil && now.Sub(at) > killedAfter {
		served.State = Killed
	}
	return served, nil
}

// ServedEvery is the period in which a server writes its figures: a kill costs no more of them.
const ServedEvery = 15 * time.Second

// killedAfter is the age of the figures of a server that does not write them any more.
const killedAfter = 4 * ServedEvery

// fileBeginsWith reports whether a file begins with that text.
func fileBeginsWith(file, prefix string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	text := make([]byte, len(prefix))
	n, _ := f.Read(text)
	return bytes.Equal(text[:n], []byte(prefix))
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

// verdict returns a sentence about how many requests were answered, refused, failed or given up.
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

// subtitle names the server: its provider, and its time.
func (r *Served) subtitle() string {
	text := "headrace serve"
	if r.Provider != "" {
		text += ", " + r.Provider
	}
	of := Report{zone: r.zone}
	return text + ", " + of.at(r.Began) + " to " + of.at(r.At)
}

// note returns a sentence about what is unusual; "" if nothing is.
func (r *Served) note() string {
	switch r.State {
	case Running:
		return "The server goes on: these are the figures so far."
	case Killed:
		return "The server was killed, or its machine went down: these are its last figures."
	}
	return ""
}

// cardList returns the figures at the top of the report: time, load, waits and cost.
func (r *Served) cardList() []card {
	cost := card{"cost", r.costText(&r.All), ""}
	if r.All.Unpriced > 0 && !r.Simulated {
		cost.note = words.Unpriced(r.All.Unpriced) + " not counted"
	}
	return []card{
		{"up", durationText(r.UpS), "since it began"},
		{"now", words.Number(r.Waiting) + " waiting", words.Number(r.InFlight) + " in flight"},
		{"a request waited", durationText(r.All.WaitP50S), "in the middle; 95 of 100 at most " + durationText(r.All.WaitP95S)},
		cost,
	}
}

// costText returns the cost of requests, in few words.
func (r *Served) costText(tally *Tally) string {
	switch {
	case r.Simulated:
		return "none (simulated)"
	case tally.Priced == 0 && tally.Unpriced > 0:
		return "unknown"
	case tally.Unpriced > 0:
		return "at least " + words.Money(tally.USD)
	}
	return words.Money(tally.USD)
}

// HTML returns the report as a page.
func (r *Served) HTML() string {
	p := &page{Report: &Report{}}
	p.begin("serve")
	p.writeServed(r, r.note(), "")
	p.end(r.Headrace, r.At)
	return p.String()
}

// Live returns the title and the body of the live page. held describes what holds requests back now; "" for
// nothing.
func (r *Served) Live(held string) (title, body string) {
	p, note := &page{Report: &Report{}, pointed: true}, ""
	if r.State == Ended {
		note = "The server has ended: this is its last state."
	}
	p.writeServed(r, note, held)
	p.printf(`<p class="sub">headrace %s, as of %s</p>`+"\n", r.Headrace, r.samplesReport().at(r.At))
	return r.verdict(), p.String()
}

// samplesReport returns a report with only the zone and the samples of the server, for the plots.
func (r *Served) samplesReport() *Report {
	report := &Report{zone: r.zone}
	run := timeline.Run{}
	run.At, _ = time.Parse(time.RFC3339Nano, r.Began)
	for k := range r.Samples {
		run.Samples = append(run.Samples, r.Samples[k].toSample())
	}
	report.runs = []timeline.Run{run}
	return report
}

// writeServed writes the body of the page of a server.
func (p *page) writeServed(r *Served, note, held string) {
	p.printf("<h1>%s</h1>\n<p class=\"sub\">%s</p>\n", r.verdict(), r.subtitle())
	if note != "" {
		p.printf(`<p class="note"><strong>%s</strong></p>`+"\n", note)
	}
	p.writeCards(r.cardList())
	if held != "" {
		p.printf("<p>Held by: <strong>%s</strong></p>\n", held)
	}
	report := r.samplesReport()
	if plots := newPlots(report, mostPoints); plots != nil {
		p.printf("<h2>Over time</h2>\n")
		p.writePoints(report, plots)
		p.writeFigures(plots.serverFigures(report))
		p.writeServedTable(report)
	}
	for _, t := range r.tables() {
		p.printf("<h2>%s</h2>\n", t.title)
		to := p.beginTable(anyOf(t.heads)...)
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

// serverFigures draws the plots of a server.
func (p *plots) serverFigures(r *Report) []figure {
	list := []figure{
		p.figure("Requests a second", "answered, and those that were refused or failed", shortNumber,
			namedSeries{p.series(chart.Area, func(s *observe.Sample) float64 { return ratePer(float64(s.Answered), s.Span, 1) }), "answered"},
			namedSeries{p.series(chart.Second, func(s *observe.Sample) float64 { return ratePer(float64(s.Failed), s.Span, 1) }), "failed or given up"},
			namedSeries{p.series(chart.Rug, func(s *observe.Sample) float64 { return float64(s.Throttled) }), "refused by headrace"}),
		p.figure("Requests that wait", "in the mean", shortNumber, namedSeries{p.series(chart.Area, func(s *observe.Sample) float64 { return s.Waiting }), "waiting"}),
		p.figure("Calls in flight", fmt.Sprintf("at most %s at once", words.Number(p.most())), shortNumber,
			namedSeries{p.series(chart.Area, func(s *observe.Sample) float64 { return s.InFlight }), "mean"},
			namedSeries{p.series(chart.Second, func(s *observe.Sample) float64 { return float64(s.InFlightMost) }), "most"}),
		p.figure("How long a request waited", p.latencyWords(), func(v float64) string { return shortNumber(v) + " s" },
			namedSeries{p.series(chart.Line, quantile(0.5)), "p50"}, namedSeries{p.series(chart.Second, quantile(0.95)), "p95"}),
	}
	if f := p.costFigure(r); f != nil {
		list = append(list, *f)
	}
	return list
}

// writeServedTable writes the plots as a table, for those who cannot see them.
func (p *page) writeServedTable(report *Report) {
	coarse := newPlots(report, mostRows)
	p.printf(`<details><summary>The plots as a table</summary>`)
	t := p.beginTable("from", "answered/s", "waiting", "in flight", "p50 s", "p95 s", "refused", "failed", "cost")
	for k := range coarse.samples[:min(len(coarse.samples), mostRows)] {
		s := &coarse.samples[k]
		t.row(report.moment(coarse.spans[k].From), orDash(ratePer(float64(s.Answered), s.Span, 1)), trimmed(math.Round(s.Waiting*10)/10), trimmed(s.InFlight), orDash(quantile(0.5)(s)), orDash(quantile(0.95)(s)),
			words.Number(s.Throttled), words.Number(s.Failed), words.Money(s.USD))
	}
	t.end()
	p.printf("</details>\n")
}

// grid is a table of a report of a server.
type grid struct {
	title string
	heads []string
	rows  [][]string
}

// tables returns the tables of classes, clients, lanes and refusals that have rows.
func (r *Served) tables() (list []grid) {
	for _, of := range []struct {
		title, head string
		rows        []Tally
	}{{"Classes", "class", r.Classes}, {"Clients", "client", r.Clients}, {"Lanes", "lane", r.Lanes}} {
		g := grid{of.title, []string{of.head, "answered", "refused", "failed", "gone", "wait p50", "wait p95", "first byte p50", "first byte p95", "cost"}, nil}
		for i := range of.rows {
			t := &of.rows[i]
			g.rows = append(g.rows, []string{
				t.Name, words.Number(t.Answered), words.Number(t.Refused), words.Number(t.Failed), words.Number(t.Gone), durationText(t.WaitP50S), durationText(t.WaitP95S), durationText(t.FirstP50S), durationText(t.FirstP95S),
				r.costText(t),
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
		cells([]string{c.name, c.value, c.note})
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
