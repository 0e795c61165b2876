package peers

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/must"
)

// A drawn family is the same in both: ours, and a collector of Prometheus' own client.
type drawn struct {
	ours *exposition.Family
	desc *prometheus.Desc
	send []func(to chan<- prometheus.Metric)
}

func (d *drawn) Describe(to chan<- *prometheus.Desc) { to <- d.desc }

func (d *drawn) Collect(to chan<- prometheus.Metric) {
	for _, send := range d.send {
		send(to)
	}
}

// Whatever the labels and helps hold, a page has the same bytes as one of Prometheus' own client, and its parser
// reads it.
func TestPagesAreThoseOfPrometheusOwnClient(t *testing.T) {
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			pieces := []string{"a", "B", "\\", "\n", `"`, "é", "{", "}", ",", " ", "=", "\x00", "lane/one", "\xff"}
			var s strings.Builder
			for range draw.IntN(5) {
				s.WriteString(pieces[draw.IntN(len(pieces))])
			}
			return s.String()
		}
		figure := func() float64 {
			return []float64{0, 1, -1, 0.1, 1e21, 1e-7, draw.Float64(), float64(draw.Int64()), math.MaxFloat64}[draw.IntN(9)]
		}
		registry, page := prometheus.NewPedanticRegistry(), exposition.Page{}
		for _, name := range []string{"b_total", "a", "c_seconds", "b_b"}[:1+draw.IntN(4)] {
			names := []string{"lane", "zone", "a"}[:draw.IntN(4)]
			help := strings.ToValidUTF8(text(), "")
			kind := []exposition.Kind{exposition.Gauge, exposition.Counter, exposition.Histogram}[draw.IntN(3)]
			d := &drawn{
				ours: &exposition.Family{Name: name, Help: help, Kind: kind, Labels: names},
				desc: prometheus.NewDesc(name, help, names, nil),
			}
			for k := range 1 + draw.IntN(5) {
				values := make([]string, len(names))
				valid := make([]string, len(names))
				for i := range names {
					values[i] = string(rune('a'+k)) + text() // series differ
					valid[i] = strings.ToValidUTF8(values[i], "\uFFFD")
				}
				d.add(t, &page, kind, figure(), values, valid, draw)
				if len(names) == 0 {
					break
				}
			}
			registry.MustRegister(d)
		}
		var want bytes.Buffer
		for _, family := range must.Get(registry.Gather())(t) {
			must.Get(expfmt.MetricFamilyToText(&want, family))(t)
		}
		got := page.AppendText(nil)
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("seed %d: got\n%s\nPrometheus' client writes\n%s", seed, got, want.Bytes())
		}
		parse(t, got)
	}
}

// add shows one series on both.
func (d *drawn) add(t *testing.T, page *exposition.Page, kind exposition.Kind, v float64, values, valid []string, draw *rand.Rand) {
	t.Helper()
	if kind != exposition.Histogram {
		page.Add(d.ours, v, values...)
		theirs := prometheus.GaugeValue
		if kind == exposition.Counter {
			theirs = prometheus.CounterValue
		}
		one := must.Get(prometheus.NewConstMetric(d.desc, theirs, v, valid...))(t)
		d.send = append(d.send, func(to chan<- prometheus.Metric) { to <- one })
		return
	}
	ends := []float64{0.01, 0.5, 1, 1e6}
	counted := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.ours.Name, Help: d.ours.Help, Buckets: ends}, d.ours.Labels)
	s := &exposition.Spread{Ends: ends, Counts: make([]uint64, len(ends)+1)}
	for range draw.IntN(20) {
		v := []float64{0, 0.01, 0.5, draw.Float64(), 1e6, 1e9}[draw.IntN(6)]
		s.Add(v)
		counted.WithLabelValues(valid...).Observe(v)
	}
	counted.WithLabelValues(valid...)
	page.AddSpread(d.ours, s, values...)
	d.send = append(d.send, counted.Collect)
}

// parse reads a page as Prometheus does.
func parse(t *testing.T, page []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return must.Get(parser.TextToMetricFamilies(bytes.NewReader(page)))(t)
}
