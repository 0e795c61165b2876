package words

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// A sum of money has as many digits as make sense, and is never rounded to nothing.
func TestMoney(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0.00", 0.0004: "$0.0004", 0.04: "$0.04", 0.0412: "$0.0412", 5.21: "$5.21", 1204: "$1,204",
		0.00005: "$0.0001", 0.000049: "$0.000049", 0.0000775: "$0.0001", 0.00000286: "$0.0000029", 0.00001: "$0.00001",
		0.001: "$0.0010", 0.00999: "$0.01", 0.0999: "$0.0999", 0.09996: "$0.10", 0.125: "$0.12", 0.5: "$0.50", 1.5: "$1.50",
		999.99: "$999.99", 999.996: "$1,000", 12345.6: "$12,346", 1e15: "$1,000,000,000,000,000",
		1e-9: "$0.000000001", 9.9e-10: "<$0.000000001", 5e-324: "<$0.000000001", -0.04: "-$0.04", -2000: "-$2,000",
		math.Inf(1): "unknown", math.Inf(-1): "unknown",
	} {
		if got := Money(usd); got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
	}
	if got := Money(math.NaN()); got != "unknown" {
		t.Error(got)
	}
}

// A sum that leaves out items of earlier runs says so.
func TestBudgetOfUnknownPrices(t *testing.T) {
	m := batch.Spending{Cap: limiter.USD(5), Spent: limiter.USD(3.12)}
	for unpriced, want := range map[int]string{
		0:    "$3.12 of $5.00 spent (--max-cost)",
		1:    "at least $3.12 of $5.00 spent (--max-cost), and what 1 item of unknown price cost in earlier runs",
		1412: "at least $3.12 of $5.00 spent (--max-cost), and what 1,412 items of unknown price cost in earlier runs",
	} {
		if got := Budget(m, unpriced); got != want {
			t.Errorf("%d: %s, want %s", unpriced, got, want)
		}
	}
}

// What may be billed is said with the tokens that are known of it, if any are; of nothing, nothing.
func TestDoubtful(t *testing.T) {
	for _, c := range []struct {
		calls   int
		in, out int64
		want    string
	}{
		{0, 0, 0, ""},
		{1, 0, 0, "1 call was cut off and may be billed"},
		{2, 0, 0, "2 calls were cut off and may be billed"},
		{2, 1, 0, "2 calls were cut off and may be billed: 1 token in, 0 out, or more"},
		{1, 1234, 5678, "1 call was cut off and may be billed: 1,234 tokens in, 5,678 out, or more"},
	} {
		if got := Doubtful(c.calls, c.in, c.out); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Digits stand in groups of three.
func TestThousands(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 999.4: "999", 999.6: "1,000", 1234567: "1,234,567", 1e15: "1,000,000,000,000,000", -1234: "-1,234", -123: "-123"} {
		if got := Thousands(x); got != want {
			t.Errorf("%v: %s", x, got)
		}
	}
}

// FuzzMoney: the text shows the sum, give or take half of its last digit but one, and a sum
// above zero never shows as zero.
func FuzzMoney(f *testing.F) {
	for _, usd := range []float64{0, 0.00005, 0.09995, 0.0999499, 999.995, 1e-9, 1e300} {
		f.Add(usd)
	}
	f.Fuzz(func(t *testing.T, usd float64) {
		text := Money(usd)
		if text == "unknown" || strings.HasPrefix(strings.TrimPrefix(text, "-"), "<") {
			return
		}
		shown, err := strconv.ParseFloat(strings.NewReplacer("$", "", ",", "").Replace(text), 64)
		if err != nil || usd != 0 && shown == 0 {
			t.Fatalf("%v: %s, %v", usd, text, err)
		}
		off := math.Abs(shown - usd)
		if most := max(0.05*math.Abs(usd), 0.00005); off > 1.000001*most {
			t.Fatalf("%v: %s is off by %v", usd, text, off)
		}
	})
}

// Calls have commas in their number, as tokens and dollars have.
func TestUnpriced(t *testing.T) {
	if got, want := Cost(0, false, 1500), "unknown (1,500 calls of unknown price)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
