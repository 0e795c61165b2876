package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// table prints the measurements as Markdown.
func table(out io.Writer, p plan, some []contestant, rounds []round) error {
	_, err := fmt.Fprintf(out, `%d prompts of %d bytes, %d in flight, the server answers after %v; %s.
Median of %d rounds; in brackets the least and the greatest of the ratios to the bare loop of the same round.

| | items/s | of bare | CPU s per 1,000 | of bare | allocs per item | peak | connections |
|---|---:|---:|---:|---:|---:|---:|---:|
`, p.items, p.size, p.inFlight, p.latency, machine(), len(rounds))
	for _, c := range some {
		if err == nil {
			_, err = fmt.Fprintln(out, row(p, c.name, rounds))
		}
	}
	if err == nil && p.latency > 0 {
		err = ideal(out, p, some, rounds)
	}
	return err
}

func machine() string {
	return fmt.Sprintf("%d CPUs, %s, %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func row(p plan, name string, rounds []round) string {
	perSecond := func(f figures) float64 { return float64(p.items) / f.wall.Seconds() }
	perThousand := func(f figures) float64 { return f.cpu.Seconds() * 1000 / float64(p.items) }
	return fmt.Sprintf("| %s | %.0f | %s | %.4f | %s | %.0f | %.0f MiB | %.0f |", name,
		median(each(rounds, name, perSecond)), ratio(rounds, name, perSecond),
		median(each(rounds, name, perThousand)), ratio(rounds, name, perThousand),
		median(each(rounds, name, func(f figures) float64 { return f.allocs / float64(p.items) })),
		median(each(rounds, name, func(f figures) float64 { return float64(f.peak) / (1 << 20) })),
		median(each(rounds, name, func(f figures) float64 { return float64(f.connections) })))
}

// ideal compares with the time that no program can beat: the most calls in flight, from the
// first moment to the last.
func ideal(out io.Writer, p plan, some []contestant, rounds []round) error {
	least := time.Duration(float64(p.items) * float64(p.latency) / float64(p.inFlight))
	_, err := fmt.Fprintf(out, "\nWall time over items × latency / in flight (%v):", least.Round(time.Millisecond))
	for _, c := range some {
		all := each(rounds, c.name, func(f figures) float64 { return f.wall.Seconds() / least.Seconds() })
		if err == nil {
			_, err = fmt.Fprintf(out, " %s %.3f", c.name, median(all))
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(out)
	}
	return err
}

func each(rounds []round, name string, of func(figures) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = of(r[name])
	}
	return all
}

// ratio returns a figure over the bare loop's, round by round.
func ratio(rounds []round, name string, of func(figures) float64) string {
	own, bare := each(rounds, name, of), each(rounds, yardstick, of)
	for i := range own {
		own[i] /= bare[i]
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(own), slices.Min(own), slices.Max(own))
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
