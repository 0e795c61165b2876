package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch"
)

// failureBound is the value of --max-failures: a number of items, or a share of them. The zero
// value sets no bound.
type failureBound struct {
	Items int
	Share float64
}

// Set reads a number of items, such as "20", or a share of them, such as "5%".
func (b *failureBound) Set(text string) error {
	percent, isShare := strings.CutSuffix(strings.TrimSpace(text), "%")
	if isShare {
		p, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(p > 0 && p < 100) { // the negation also catches NaN
			return errors.New("want a share above 0% and below 100%")
		}
		*b = failureBound{Share: p / 100}
		return nil
	}
	n, err := strconv.Atoi(percent)
	if err != nil || n < 0 {
		return errors.New("want a number of items, such as 20, or a share, such as 5%")
	}
	*b = failureBound{Items: n}
	return nil
}

// String returns the bound as the user gave it.
func (b *failureBound) String() string {
	if b.Share > 0 {
		return strconv.FormatFloat(100*b.Share, 'g', 6, 64) + "%" // six digits: 0.07 is 7 %, though not exactly in binary
	}
	return strconv.Itoa(b.Items)
}

// checkMaxCost refuses a sum that no run can cost.
func (f *Flags) checkMaxCost() error {
	if f.MaxCost == 0 && !f.All.Changed("max-cost") || f.MaxCost > 0 && f.MaxCost <= batch.MostBudget {
		return nil
	}
	return fmt.Errorf("--max-cost %v is invalid: want USD, more than 0 and at most %.0f", f.MaxCost, batch.MostBudget)
}

// boundType is the type of a failureBound that the help shows.
const boundType = "N|P%"

// Type is part of [pflag.Value].
func (b *failureBound) Type() string { return boundType }

// Options returns the bound as an option of package batch; none if there is no bound.
func (b *failureBound) Options() []batch.Option {
	switch {
	case b.Items > 0:
		return []batch.Option{batch.WithMaxFailures(b.Items)}
	case b.Share > 0:
		return []batch.Option{batch.WithMaxFailureShare(b.Share)}
	}
	return nil
}

// checkSchema refuses retries out of bounds, and those that nothing asks for.
func (f *Flags) checkSchema() error {
	if f.Schema == "" && f.JobSchema == "" && f.All.Changed("schema-retries") {
		return errors.New("--schema-retries has no meaning without --schema: name the file of a schema, or remove it")
	}
	return errors.Join(AtLeast("schema-retries", f.SchemaRetries, 0), atMost("schema-retries", f.SchemaRetries, batch.MaxMisfitRetries))
}
