package prices

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/internal/command/price"
)

// A table fits into 100 columns, no matter how many vendors share a price.
func TestTableFits(t *testing.T) {
	p := price.Price{When: []price.Case{{Begin: 30 * time.Minute, End: 990 * time.Minute, Times: -1}}}
	p.Input, p.Output, p.Cached, p.Write, p.LongWrite = 0.0125, 112.5, 0.00125, 0.0125, 0.0125
	p.Above = []price.Step{{Tokens: 200_000, Rates: p.Rates}}
	var offers []offer
	for _, name := range price.Vendors() {
		offers = append(offers, offer{vendor: name, source: price.FromTable(), price: p})
	}
	var out strings.Builder
	writeTable(&out, offers, time.Now())
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	shown := " " + strings.ReplaceAll(strings.Join(strings.Fields(out.String()), " "), ",", "") + " "
	for _, name := range price.Vendors() {
		if !strings.Contains(shown, " "+name+" ") {
			t.Errorf("%s is missing in\n%s", name, out.String())
		}
	}
}
