package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/headrace/headrace/tests/lab"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(2)
	}
}

// run prints the table of scenarios, or what the bank's flags ask for. The bank takes only the
// first of the laws.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	scenario := flags.String("scenario", "", "only scenarios whose name contains this; random:N or random:N-M for drawn ones")
	law := flags.String("law", "", "only these laws, as a,b: "+names())
	seeds := flags.String("seeds", "0,1,2", "seeds to take the mean of")
	heldOut := flags.Bool("heldout", false, "then also the first law's figures on seeds and limits that nothing was tuned on")
	var bank bankFlags
	bank.define(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	laws, err := laws(*law)
	if err != nil {
		return err
	}
	numbers, err := numbers(*seeds)
	if err != nil {
		return err
	}
	if bank.on || bank.trace != "" {
		return bank.run(out, laws[0], numbers)
	}
	rows, err := scenarios(*scenario)
	if err != nil {
		return err
	}
	return show(out, rows, laws, numbers, *heldOut)
}

func show(out io.Writer, rows []lab.Scenario, laws []lab.Rival, seeds []uint64, heldOut bool) error {
	fmt.Fprintf(out, "Makespan over the fluid optimum · 429s (other calls wasted), mean of %d seeds.\n\n", len(seeds))
	if err := lab.Table(out, rows, lab.Compare(laws, seeds)); err != nil || !heldOut {
		return err
	}
	fmt.Fprintf(out, "\nHeld out: seeds %v beside %v, and every limit scaled.\n\n", lab.HeldOutSeeds, lab.TunedSeeds)
	return lab.Table(out, rows, lab.HeldOut(laws[0]))
}

// scenarios returns the scenarios whose name contains the filter. A filter of random: and numbers
// draws others. To find none is an error.
func scenarios(filter string) ([]lab.Scenario, error) {
	if span, drawn := strings.CutPrefix(filter, "random:"); drawn {
		return random(span)
	}
	var some []lab.Scenario
	for _, s := range lab.Scenarios() {
		if strings.Contains(s.Name, filter) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("-scenario: no name contains %q", filter)
	}
	return some, nil
}

// random returns the scenarios drawn by one number, or by each number of a range.
func random(span string) ([]lab.Scenario, error) {
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("-scenario: random: %w", err)
	}
	to, err := strconv.ParseUint(last, 10, 64)
	if err != nil || to < from {
		return nil, fmt.Errorf("-scenario: random: %q is no range", span)
	}
	var some []lab.Scenario
	for n := from; n <= to; n++ {
		some = append(some, lab.Random(n))
	}
	return some, nil
}

func names() string {
	var all []string
	for _, l := range lab.Rivals() {
		all = append(all, l.Name)
	}
	return strings.Join(all, ", ")
}

// laws returns the named laws, in the order of the list. An empty list is all of them.
func laws(list string) ([]lab.Rival, error) {
	if list == "" {
		return lab.Rivals(), nil
	}
	var some []lab.Rival
	for name := range strings.SplitSeq(list, ",") {
		before := len(some)
		for _, l := range lab.Rivals() {
			if l.Name == name {
				some = append(some, l)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("-law: %q is none of %s", name, names())
		}
	}
	return some, nil
}

func numbers(list string) ([]uint64, error) {
	var some []uint64
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("-seeds: %w", err)
		}
		some = append(some, n)
	}
	return some, nil
}
