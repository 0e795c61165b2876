package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch"
)

// leastMoney is the least sum of money, in dollars, that is shown in figures. A single token
// of the cheapest models costs fifty times as much.
const leastMoney = 1e-9

// Money shows dollars with as many digits as make sense. It shows $1,204 from a thousand on,
// $5.21 from ten cents on, $0.0412 and $0.0004 below, and two digits of smaller sums. A sum
// above zero never shows as zero. A value that is no number is unknown.
func Money(usd float64) string {
	switch {
	case math.IsNaN(usd) || math.IsInf(usd, 0):
		return "unknown"
	case usd < 0:
		return "-" + Money(-usd)
	case usd == 0:
		return "$0.00"
	case usd < leastMoney:
		return "<$" + strconv.FormatFloat(leastMoney, 'f', -1, 64)
	case usd >= 999.995: // two decimals would make it a thousand
		return "$" + Thousands(usd)
	case usd >= 0.09995:
		return fmt.Sprintf("$%.2f", usd)
	case usd >= 0.00005:
		return "$" + strings.TrimSuffix(fmt.Sprintf("%.4f", usd), "00")
	}
	decimals := 1 - int(math.Floor(math.Log10(usd)))
	return "$" + strings.TrimRight(strconv.FormatFloat(usd, 'f', decimals, 64), "0")
}

// Budget says how much of a budget is spent, what more calls that broke may cost, and by how much
// calls cost more than was reserved for them. unpriced counts the items of earlier runs of which no
// cost is known.
func Budget(m batch.Spending, unpriced int) string {
	text := fmt.Sprintf("%s of %s spent (--max-cost)", Money(m.Spent.USD()), Money(m.Cap.USD()))
	if unpriced > 0 {
		text = fmt.Sprintf("at least %s, and what %s %s of unknown price cost in earlier runs", text, Number(unpriced), OneOr(unpriced, "item", "items"))
	}
	if m.Doubtful > 0 {
		text += fmt.Sprintf(", up to %s more for calls that broke", Money(m.Doubtful.USD()))
	}
	if m.Over > 0 {
		text += fmt.Sprintf("; %s cost %s more than was reserved", Count(m.OverCalls, "call"), Money(m.Over.USD()))
	}
	return text
}

// Thousands shows a whole number with its digits in groups of three.
func Thousands(x float64) string {
	return grouped(strconv.FormatFloat(math.Round(x), 'f', 0, 64))
}

// Doubtful says what may be billed in addition to all that was counted; "" if there is nothing. The tokens are those
// that answers reported before they were cut off.
func Doubtful(calls int, input, output int64) string {
	if calls == 0 {
		return ""
	}
	were := "were"
	if calls == 1 {
		were = "was"
	}
	text := fmt.Sprintf("%s %s cut off and may be billed", Count(calls, "call"), were)
	if input+output > 0 {
		tokens := "tokens"
		if input == 1 {
			tokens = "token"
		}
		text += fmt.Sprintf(": %s %s in, %s out, or more", Number(int(input)), tokens, Number(int(output)))
	}
	return text
}

// Cost formats a sum of money. If some calls have no known cost, the sum is "at least" so much, and never 0. priced
// says that some call had a price.
func Cost(usd float64, priced bool, unpriced int) string {
	switch {
	case priced && unpriced > 0:
		return "at least " + Money(usd) + " (+ " + Unpriced(unpriced) + ")"
	case priced:
		return Money(usd)
	case unpriced > 0:
		return "unknown (" + Unpriced(unpriced) + ")"
	}
	return "none"
}

// Unpriced says how many calls have no known cost.
func Unpriced(calls int) string {
	return Number(calls) + " " + OneOr(calls, "call", "calls") + " of unknown price"
}
