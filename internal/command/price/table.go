package price

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// Table knows the prices of models by their names, on one lane or in a run of one provider. A
// model that it does not know has no price, which is not a price of 0. The zero value knows no
// model. It does not change once it is made, so many goroutines may use it at once. A lookup of a
// name in small letters allocates nothing.
type Table struct {
	file        []modelPrices // --prices; of several sources, the first that knows a model counts
	others      *Price        // --price, or the lane's own
	isLane      bool          // others is the lane's own
	listed      []modelPrices // the list of this build, likewise
	reportsCost bool          // its provider's answers say what they cost
}

// The sources of a cost: the first that has one counts.
const (
	FromProvider = "provider" // the answer said it
	FromLane     = "lane"     // the lane's own price
	FromFile     = "file"     // --prices
	FromFlag     = "flag"     // --price
)

// FromTable names the list of this build as the source of a price.
func FromTable() string { return fromTable() }

var fromTable = sync.OnceValue(func() string { return "table of " + AsOf() })

// Read makes the table of a run that calls one vendor. The file has the user's prices. others is one price
// for all models that are not in it, as IN,OUT[,CACHED[,WRITE]]. Each may be "". The error names the wrong
// flag.
func Read(file, others, vendor string) (t Table, err error) {
	var models *fileModels
	if file != "" {
		if models, err = readFile(file); err != nil {
			return Table{}, err
		}
	}
	return tableOf(models, others, vendor)
}

// ReadText is Read with the text of a file of prices in place of its name.
func ReadText(text, others, vendor string) (Table, error) {
	models, err := readModels("the prices of the job", strings.NewReader(text))
	if err != nil {
		return Table{}, err
	}
	return tableOf(models, others, vendor)
}

// tableOf makes a table from the models of a file, if there is one, and the price for all others.
func tableOf(models *fileModels, others, vendor string) (table Table, err error) {
	builtInList := list()
	table.file = models.pricesFor(vendor, builtInList)
	if others != "" {
		p, ok := parseFlag(others)
		if !ok {
			return Table{}, fmt.Errorf("--price: %q is invalid: write IN,OUT, IN,OUT,CACHED or IN,OUT,CACHED,WRITE in USD per million tokens, such as 2.5,10, none of them above 1e9", others)
		}
		if sources := builtInList.Vendors[vendor]; len(sources) > 0 {
			p.addTiers(builtInList.Tiers[sources[0]])
		}
		table.others = &p
	}
	row, _ := catalog.Named(vendor)
	table.listed, table.reportsCost = builtInList.pricesFor(vendor), row.TellsCost
	return table, nil
}

// OfLane says that the price for all other models is the lane's own, and beats the file.
func (t *Table) OfLane() { t.isLane = true }

// Of returns the price of a model, and its source. It finds the model by its name, by its name without a
// date, or by a pattern. It guesses no other name: gpt-4o-mini is not a gpt-4o.
func (t *Table) Of(model string) (p Price, source string, ok bool) {
	if t.others != nil && t.isLane {
		return *t.others, FromLane, true
	}
	if p := find(t.file, model); p != nil {
		return *p, FromFile, true
	}
	if t.others != nil {
		return *t.others, FromFlag, true
	}
	if p := find(t.listed, model); p != nil {
		return *p, fromTable(), true
	}
	return Price{}, "", false
}

// find returns the price of a model; nil if it has none. Of several sources the first that knows the model
// counts, even if the model has no price there.
func find(all []modelPrices, model string) *Price {
	for i := range all {
		if p, known := all[i].find(model); known {
			return p
		}
	}
	return nil
}

// Cost returns the cost of a model's tokens at an instant, and its source; false if it is unknown.
func (t *Table) Cost(model string, usage provider.Usage, at time.Time) (cost limiter.Money, source string, known bool) {
	if usage.HasTold && t.reportsCost {
		return limiter.Money(usage.Told), FromProvider, true
	}
	p, source, ok := t.Of(model)
	if !ok {
		return 0, "", false
	}
	if cost, known = p.Of(usage, at); !known {
		return 0, "", false
	}
	return cost, source, true
}

// oldAfter is the age at which the list is likely to be wrong somewhere: makers change their
// prices every few months.
const oldAfter = 120 * day

// Old returns a warning if the built-in list is old; "" if it is not.
func Old(now time.Time) string {
	asOf, err := time.Parse(time.DateOnly, AsOf())
	age := now.Sub(asOf)
	if err != nil || age <= oldAfter {
		return ""
	}
	return fmt.Sprintf("the built-in prices are %d days old (of %s) and may have changed: a newer headrace has newer ones, and --prices FILE has yours", int(age/day), AsOf())
}

// parseFlag parses a value of --price: IN,OUT, IN,OUT,CACHED or IN,OUT,CACHED,WRITE. A single 0 is the price
// of a free lane.
func parseFlag(s string) (Price, bool) {
	if strings.TrimSpace(s) == "0" {
		return Price{}, true
	}
	var amounts []*float64
	for part := range strings.SplitSeq(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return Price{}, false
		}
		amounts = append(amounts, &x)
	}
	if len(amounts) < 2 || len(amounts) > 4 {
		return Price{}, false
	}
	amounts = append(amounts, nil, nil)
	p, err := entry{scheduled: scheduled{rates: rates{Input: amounts[0], Output: amounts[1], Cached: amounts[2], Write: amounts[3]}}}.toPrice()
	return p, err == nil
}

var errRates = errors.New("want a number from 0 to 1e9")
