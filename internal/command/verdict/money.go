package verdict

import (
	"math"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/words"
)

// Ways to set a price. A run over lanes takes no --price, as that describes one lane.
const (
	setPrice        = "set its price with --price IN,OUT (USD per million tokens), or in a file with --prices"
	setPriceOfLanes = "set price in the lanes, or prices in a file with --prices"
)

// howToPrice returns the way to set the price of a model in this run.
func (v *Verdict) howToPrice() string {
	if v.Flags.Fleet != nil {
		return setPriceOfLanes
	}
	return setPrice
}

// Unpriced is the end of a run with a --max-cost whose input names models without a price.
func (v *Verdict) Unpriced(models []string) error {
	shown := make([]string, len(models))
	for i, model := range models {
		shown[i] = strconv.Quote(Shown(model))
	}
	return v.FailAgain(exit.Usage, "--max-cost: the price of %s is not known, and nothing was called: %s, then run:",
		strings.Join(shown, ", "), strings.Replace(v.howToPrice(), "its price", "prices", 1))
}

// overBudget is the end of a run whose --max-cost does not cover the next call.
func (v *Verdict) overBudget(s *promptfile.Sums) error {
	why, m := s.OverBudget, s.Money
	if why.Unpriced {
		return v.FailAgain(exit.Bound, "stopped before a call of %q, whose price is not known (--max-cost): %s\n%s. %s",
			Shown(s.UnpricedModel), words.Budget(m, s.EarlierUnknown), v.savedText(s), v.continueText(v.howToPrice()))
	}
	advice := "raise --max-cost"
	if s.Counters.Calls == 0 && s.EarlierDone == 0 { // a result holds for the question with the bound that it was asked with
		advice += ", or bound the answers with " + v.answerBoundFlag()
	}
	return v.FailRaised(v.enoughBudget(s), exit.Bound,
		"stopped: %s, and the next call may cost %s\n%s: %s", words.Budget(m, s.EarlierUnknown), words.Money(why.Next.USD()), v.savedText(s), v.continueText(advice))
}

// answerBoundFlag names the flag that bounds all answers.
func (v *Verdict) answerBoundFlag() string {
	if _, ofPrompts := v.Flags.AnswerBounds(); ofPrompts > 0 {
		return "--max-tokens"
	}
	return "--param max_tokens=N"
}

// enoughBudget returns a --max-cost in USD that should cover the rest, too, judged by the mean of this run. Where
// nothing is known, it is at least twice the present one.
func (v *Verdict) enoughBudget(s *promptfile.Sums) string {
	m := s.Money
	usd := 2 * m.Cap.USD()
	if rep := v.Report; rep != nil && s.Priced > 0 && rep.Left > 0 {
		rest := s.CostUSD / float64(s.Priced) * float64(rep.Left)
		usd = m.Spent.Plus(m.Doubtful).USD() + 1.1*rest + m.Over.USD() + s.OverBudget.Next.USD() // the last call reserves as much
	}
	usd = max(usd, m.Spent.Plus(m.Doubtful).Plus(s.OverBudget.Next).USD())
	step := math.Pow(10, math.Floor(math.Log10(usd))-1) // two figures are as much as an estimate is worth
	return strconv.FormatFloat(math.Ceil(usd/step)*step, 'g', 6, 64)
}
