package plan

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// Advice is a flag with which the same run would be faster, cheaper, safer or surer. The names are a
// promise.
type Advice struct {
	Kind string `json:"kind"` // faster, cheaper, safer, surer
	Flag string `json:"flag"`
	Text string `json:"text"` // what it would change
}

// pilotItems is the size of a pilot that is advised: enough for a mean, and at most a fourth of the
// items from fewItems on.
const (
	pilotItems = 50
	fewItems   = 200
)

// advice returns what a person may do about the time and the cost.
func (p *Plan) advice() (list []Advice) {
	list = p.addFaster(list)
	usd, unpriced := p.Cost()
	if flex := p.costInFlex(); flex < usd && unpriced == 0 {
		list = append(list,
			Advice{"cheaper", "--service-tier flex", words.Money(flex) + ", for models that have the tier; slower, and refused while there is no room"},
			Advice{"cheaper", "--service-tier auto", words.Money(flex) + " to " + words.Money(usd) + ", the standard price for lines that flex has no room for"})
	}
	if row, lane := p.poolToPrefer(); row != nil {
		list = append(list, Advice{"cheaper", "", fmt.Sprintf("prefer %s in pool %s: %s, while it is well", lane.spec.Spec.Name, row.route.Pool.Name, words.Money(usd-row.usd+row.low))})
	}
	if _, _, unpriced := p.Span(); usd > 0 && unpriced == 0 && !p.cfg.Capped { // a cap needs every price
		text := "it stops there, and a larger one continues it"
		if p.cfg.Before > 0 {
			text += "; " + words.Money(p.cfg.Before) + " of it are spent"
		}
		list = append(list, Advice{"safer", "--max-cost " + suggestedCap(usd, p.dearestCall(), p.cfg.Before), text})
	}
	if p.cfg.Pilot == nil && p.items >= fewItems {
		list = append(list, Advice{"surer", fmt.Sprintf("--pilot %d", pilotItems), "real answers show how long they are, and are kept"})
	}
	return list
}

// addFaster adds what would make the run faster. It is more of the limit that binds, or the use of lanes that
// only wait for others to fail.
func (p *Plan) addFaster(list []Advice) []Advice {
	if p.timeWhenSpread > 0 {
		_, high, unpriced := p.Span()
		text := fmt.Sprintf("spread the lines of each pool over all its lanes: %s", durationText(p.timeWhenSpread))
		if unpriced == 0 {
			text += ", for at most " + words.Money(high)
		}
		return append(list, Advice{"faster", "", text})
	}
	bound, isBound := p.binding()
	for _, change := range p.whatIfs {
		switch {
		case !isBound || change.dimension != bound:
		case bound == limiter.None && p.cfg.Routes == nil:
			list = append(list, Advice{"faster", fmt.Sprintf("-c %d", 2*p.cfg.Concurrency), durationText(change.double)})
		case bound == limiter.None:
			list = append(list, Advice{"faster", "", fmt.Sprintf("%s with twice the calls in flight: concurrency of the lanes, and -c", durationText(change.double))})
		default:
			list = append(list, Advice{"faster", "", fmt.Sprintf("%s with twice the %s, if the provider grants that", durationText(change.double), limitWord(bound))})
		}
	}
	return list
}

// dearestCall returns the most that a run with a --max-cost reserves for one call.
func (p *Plan) dearestCall() (usd float64) {
	for _, m := range p.models {
		usd = max(usd, m.dearest)
	}
	return usd
}

// suggestedCap returns a bound for a run that may cost so much, in USD of two digits: a fifth more, or as much as leaves room
// for the dearest call at its end, and what was spent before.
func suggestedCap(usd, dearest, before float64) string {
	usd = max(usd*1.2, usd+dearest) + before
	unit := math.Pow(10, math.Floor(math.Log10(usd))-1)
	return strconv.FormatFloat(limiter.USD(math.Ceil(usd/unit)*unit).USD(), 'f', -1, 64)
}

// printAdvice prints each advice on a line of its own.
func (p *Plan) printAdvice(out io.Writer) {
	all := p.advice()
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(out)
	for _, a := range all {
		text := a.Text
		if a.Flag != "" {
			text = "run " + a.Flag + ": " + text
		}
		fmt.Fprintf(out, "  %-8s %s\n", a.Kind, text)
	}
}
