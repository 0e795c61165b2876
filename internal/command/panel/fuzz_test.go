package panel

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
)

// FuzzPanel shows random runs, one after the other, on a terminal that is resized: each row
// fits, nothing in a name steers, and what the terminal then shows is the layout.
func FuzzPanel(f *testing.F) {
	f.Add("gpt-4o-mini", uint64(1), uint8(0))
	f.Add("模型 👍🏽 ☂️ naïve é 🇦🇹 \u200d", uint64(2), uint8(1))
	f.Add("\x1b[2J\x1b]0;x\a\u009b31m\u202e\r\n\t\xff", uint64(3), uint8(4))
	f.Add(strings.Repeat("语", 1400), uint64(4), uint8(2))
	f.Add(strings.Repeat("é́̂", 700), uint64(5), uint8(7))
	f.Add("a; b, c (d, e: f; ", uint64(6), uint8(3))
	f.Fuzz(func(t *testing.T, name string, seed uint64, how uint8) {
		name = name[:min(len(name), 4096)]
		style := Style{Color: how&1 > 0, ASCII: how&2 > 0, Wide: how&4 > 0}
		chance := rand.New(rand.NewPCG(seed, 1))
		s := newStage(t, 1+chance.IntN(400), 1+chance.IntN(200))
		s.style, s.term.wide = style, style.Wide
		for range 6 {
			p, speeds := randomRun(chance, name)
			for range 2 { // of different lengths
				s.clock.Advance(time.Second)
				s.Paint(&p, speeds, time.Duration(chance.Int64N(1e13)))
				checkRows(t, s, name)
				p.Done, p.ElapsedS = p.Done+1, p.ElapsedS+1
			}
			if chance.IntN(2) > 0 {
				s.Above(func(w io.Writer) { fmt.Fprintln(w, printable.Line(name)) })
				checkRows(t, s, name)
			}
			if chance.IntN(2) > 0 {
				s.resize(1+chance.IntN(400), 1+chance.IntN(200))
				s.Paint(&p, speeds, time.Minute)
			}
		}
		s.Close()
	})
}

// checkRows checks what is painted now.
func checkRows(t *testing.T, s *stage, name string) {
	t.Helper()
	if len(s.rows) > MostRows+1+1+mostLanes || len(s.rows) > max(1, s.paintedSize.height) {
		t.Errorf("%d rows in %v", len(s.rows), s.paintedSize)
	}
	cond := narrow
	if s.style.Wide {
		cond = wide
	}
	for _, row := range s.rows {
		plain := withoutColour(row)
		if n := max(cond.StringWidth(plain), s.style.Cells(plain)); n >= s.paintedSize.width {
			t.Errorf("%d cells of %d: %q", n, s.paintedSize.width, plain)
		}
		if strings.ContainsFunc(plain, func(r rune) bool { return !unicode.IsGraphic(r) || s.style.ASCII && r > '~' }) || plain != row && !s.style.Color {
			t.Errorf("%q is made of %q", row, name)
		}
	}
	if s.paintedSize == s.currentSize && !s.term.ends(s.rows) {
		t.Errorf("shown:\n%s\nwant\n%s", strings.Join(s.term.text(), "\n"), strings.Join(s.rows, "\n"))
	}
}

// randomRun is a run in which little fits together.
func randomRun(chance *rand.Rand, name string) (p event.Progress, speeds []float64) {
	text := func() string {
		switch chance.IntN(4) {
		case 0:
			return ""
		case 1:
			return "the limit on tokens: 196 k of 200 k a minute (its headers), at 3.1 times; then -c 64 — ± …"
		}
		return name
	}
	number := func() int { return int(chance.Int64() >> chance.IntN(63)) }
	maybe := func() *int { return []*int{nil, of(number()), of(0)}[chance.IntN(3)] }
	fraction := func() *float64 { return []*float64{nil, of(float64(number()) / 100), of(-1.0)}[chance.IntN(3)] }
	pick := func(list ...string) string { return list[chance.IntN(len(list))] }
	p = event.Progress{
		State: pick("running", paused, draining, stopped, over, name), ElapsedS: float64(number()), Done: number(), Total: maybe(), Failed: int64(number()),
		InFlight: number(), Waiting: number(), PerSecond: float64(number()) / 7, Input: text(), Output: text(), Provider: text(), Models: []string{text()}, OfModels: chance.IntN(4),
		Concurrency: number(), Bound: pick("requests", "cooldown", "breaker", name), BoundText: text(), BoundMore: text(), BoundShort: text(), BoundWide: text(),
		Allowed: fraction(), EndsText: text(), EndsWide: text(), Spent: event.Spent{USD: fraction(), InputTokens: int64(number())}, Answered: number(),
		Again: number(), Cooldowns: number(), Parked: number(), Delayed: number(), Truncated: number(), OldestS: fraction(),
		Failures: []event.Failure{{Kind: text(), Code: text(), Message: text(), Count: number()}}, Latest: text(),
	}
	if chance.IntN(2) > 0 {
		p.Ends, p.InAll = &event.Ends{LikelyS: 1}, &event.InAll{USD: float64(number()), PlusMinus: 1}
		p.P50MS, p.P95MS = of(chance.Int64()), of(int64(800))
	}
	for range chance.IntN(12) {
		p.Lanes = append(p.Lanes, event.Lane{
			Name: text(), Phase: text(), BoundShort: text(), DonePerS: float64(number()), InFlight: number(), P95MS: int64(number()),
			Limits: []event.Limit{{Used: fraction()}}, Throttled: number(), Left: maybe(),
		})
	}
	for range chance.IntN(200) {
		speeds = append(speeds, chance.Float64()*float64(chance.IntN(100)))
	}
	return p, speeds
}
