package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/bank"
)

// bankFlags are the flags of the bank.
type bankFlags struct {
	on            bool
	worlds, trace string
	vary          bank.Vary
	save, against string
	parallel      int
}

// define declares the flags of the bank.
func (b *bankFlags) define(flags *flag.FlagSet) {
	flags.BoolVar(&b.on, "bank", false, "the bank of worlds instead of the scenarios")
	flags.StringVar(&b.worlds, "worlds", "", "of the bank: only worlds whose title this regular expression matches")
	flags.StringVar(&b.trace, "trace", "", "of the bank: tell the first such world second by second, with the first seed")
	flags.Float64Var(&b.vary.Rate, "rate", 1, "of the bank: times every limit")
	flags.Float64Var(&b.vary.Chance, "chance", 1, "of the bank: times every probability")
	flags.Float64Var(&b.vary.Cap, "cap", 1, "of the bank: times every cap")
	flags.IntVar(&b.vary.Status, "status", 429, "of the bank: refusals are 429 or 503")
	flags.DurationVar(&b.vary.Answers, "answers", 0, "of the bank: answers take that long; 0: the world's own time")
	flags.StringVar(&b.save, "save", "", "of the bank: also write the figures to this file")
	flags.StringVar(&b.against, "against", "", "of the bank: print what differs from the figures in this file")
	flags.IntVar(&b.parallel, "parallel", runtime.GOMAXPROCS(0), "of the bank: runs at a time")
}

func (b *bankFlags) check() error {
	if b.vary.Status != 429 && b.vary.Status != 503 {
		return fmt.Errorf("-status: %d is neither 429 nor 503", b.vary.Status)
	}
	if min(b.vary.Rate, b.vary.Chance, b.vary.Cap) <= 0 || b.vary.Answers < 0 || b.parallel < 1 {
		return errors.New("-rate, -chance, -cap and -parallel must be over 0, -answers not under it")
	}
	return nil
}

// run prints the report of a law in the bank, or the trace of one world. A trace is of the first
// world that matches, with the first seed.
func (b *bankFlags) run(out io.Writer, law lab.Rival, seeds []uint64) error {
	if err := b.check(); err != nil {
		return err
	}
	if b.trace != "" {
		some, err := b.pick("-trace", b.trace)
		if err != nil {
			return err
		}
		return some[0].Trace(out, law, seeds[0])
	}
	worlds, err := b.pick("-worlds", b.worlds)
	if err != nil {
		return err
	}
	began := time.Now()
	report := bank.Report{
		Law: law.Name, Seeds: seeds, Vary: b.vary, Results: bank.Measure(worlds, law, seeds, b.parallel),
	}
	fmt.Fprintf(out, "%s, seeds %v, rate × %g, chance × %g, cap × %g, %d; took %.0f s.\n\n",
		law.Name, seeds, b.vary.Rate, b.vary.Chance, b.vary.Cap, b.vary.Status, time.Since(began).Seconds())
	return b.report(out, report)
}

// report saves and prints a report. Next to an older one it prints only what differs.
func (b *bankFlags) report(out io.Writer, report bank.Report) error {
	if b.save != "" {
		if err := report.Save(b.save); err != nil {
			return err
		}
	}
	if b.against == "" {
		return report.Print(out)
	}
	old, err := bank.Load(b.against)
	if err != nil {
		return err
	}
	return report.PrintAgainst(out, old)
}

// pick returns the worlds and weak points whose title the flag's expression matches. To match none is an
// error.
func (b *bankFlags) pick(flag, expression string) ([]bank.World, error) {
	match, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	var some []bank.World
	for _, w := range append(bank.Worlds(b.vary), bank.WeakPoints(b.vary)...) {
		if match.MatchString(w.Title()) {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("%s: no title matches %q", flag, expression)
	}
	return some, nil
}
