package exposition

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Kind is how Prometheus takes a family's figures.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter" // never falls
	Histogram Kind = "histogram"
)

// A Family is one metric: its name, its labels and what it counts.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []string // the names; each series has a value for each
}

// A Source has figures to show. Any goroutine may call it.
type Source interface {
	Collect(to *Page)
}

// Spread holds the counts of values in the buckets of a histogram.
type Spread struct {
	Ends   []float64 // inclusive, rising, in the unit of the metric
	Counts []uint64  // of each bucket by itself; one more than Ends, for all that is above
	Sum    float64
}

// Add counts a value.
func (s *Spread) Add(v float64) {
	at, _ := slices.BinarySearch(s.Ends, v)
	s.Counts[at]++
	s.Sum += v
}

// A Page holds the figures of one moment. The zero value is empty. Only one goroutine may use it.
type Page struct {
	families map[*Family][]series
}

// A series is one line of a family, or the lines of one histogram.
type series struct {
	labels string // as they are written, without braces
	value  float64
	spread *Spread // of a histogram
}

// Add shows one figure, with the values of the family's labels. A figure that is not known, NaN or infinite, is
// left out.
func (p *Page) Add(f *Family, v float64, values ...string) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		p.add(f, series{labels: labelText(f.Labels, values), value: v})
	}
}

// AddSpread shows one histogram. The page keeps the spread.
func (p *Page) AddSpread(f *Family, s *Spread, values ...string) {
	p.add(f, series{labels: labelText(f.Labels, values), spread: s})
}

func (p *Page) add(f *Family, s series) {
	if p.families == nil {
		p.families = map[*Family][]series{}
	}
	p.families[f] = append(p.families[f], s)
}

// Series returns how many series the page has, a histogram as one.
func (p *Page) Series() (n int) {
	for _, all := range p.families {
		n += len(all)
	}
	return n
}

// escaped writes a label's value; a help is escaped alike, but for its quotes.
var (
	escaped     = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// labelText writes labels in the order of their names. It repairs values that are not UTF-8, as Prometheus takes
// nothing else.
func labelText(names, values []string) string {
	if len(names) != len(values) {
		panic("exposition: want a value for each label of " + strings.Join(names, ", "))
	}
	texts := make([]string, len(names))
	for k, name := range names {
		texts[k] = name + `="` + escaped.Replace(strings.ToValidUTF8(values[k], "\uFFFD")) + `"`
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// AppendText appends the page in the text format, version 0.0.4.
func (p *Page) AppendText(to []byte) []byte {
	families := make([]*Family, 0, len(p.families))
	for f := range p.families {
		families = append(families, f)
	}
	slices.SortFunc(families, func(a, b *Family) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range families {
		to = append(to, "# HELP "+f.Name+" "+helpEscaped.Replace(f.Help)+"\n# TYPE "+f.Name+" "+string(f.Kind)+"\n"...)
		all := p.families[f]
		slices.SortFunc(all, func(a, b series) int { return cmp.Compare(a.labels, b.labels) })
		for _, s := range all {
			if s.spread != nil {
				to = appendSpread(to, f.Name, s)
			} else {
				to = appendLine(to, f.Name, s.labels, s.value)
			}
		}
	}
	return to
}

// appendSpread appends a histogram. As the format demands, each bucket also counts the values of those below it.
func appendSpread(to []byte, name string, s series) []byte {
	before, count := s.labels, uint64(0)
	if before != "" {
		before += ","
	}
	for k, n := range s.spread.Counts {
		end := math.Inf(1)
		if k < len(s.spread.Ends) {
			end = s.spread.Ends[k]
		}
		count += n
		to = appendLine(to, name+"_bucket", before+`le="`+string(appendValue(nil, end))+`"`, float64(count))
	}
	to = appendLine(to, name+"_sum", s.labels, s.spread.Sum)
	return appendLine(to, name+"_count", s.labels, float64(count))
}

func appendLine(to []byte, name, labels string, v float64) []byte {
	to = append(to, name...)
	if labels != "" {
		to = append(to, "{"+labels+"}"...)
	}
	return append(appendValue(append(to, ' '), v), '\n')
}

// appendValue appends a figure: FormatFloat's word for infinity is the format's own.
func appendValue(to []byte, v float64) []byte { return strconv.AppendFloat(to, v, 'g', -1, 64) }
