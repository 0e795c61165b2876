package command

import (
	"errors"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch"
)

// failureBound is the value of --max-failures: a number of items, or a share of them. The zero
// value sets no bound.
type failureBound struct {
	items int
	share float64
}

// Set reads "20" or "5%".
func (b *failureBound) Set(text string) error {
	percent, isShare := strings.CutSuffix(strings.TrimSpace(text), "%")
	if isShare {
		p, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(p > 0 && p < 100) { // the negation also catches NaN
			return errors.New("want a share above 0% and below 100%")
		}
		*b = failureBound{share: p / 100}
		return nil
	}
	n, err := strconv.Atoi(percent)
	if err != nil || n < 0 {
		return errors.New("want a number of items, such as 20, or a share, such as 5%")
	}
	*b = failureBound{items: n}
	return nil
}

// String returns the bound as the user gave it.
func (b *failureBound) String() string {
	if b.share > 0 {
		return strconv.FormatFloat(100*b.share, 'g', 6, 64) + "%" // six digits: 0.07 is 7 %, though not exactly in binary
	}
	return strconv.Itoa(b.items)
}

// boundType is the type of a failureBound that the help shows.
const boundType = "N|P%"

// Type is part of [pflag.Value].
func (b *failureBound) Type() string { return boundType }

func (b *failureBound) options() []batch.Option {
	switch {
	case b.items > 0:
		return []batch.Option{batch.WithMaxFailures(b.items)}
	case b.share > 0:
		return []batch.Option{batch.WithMaxFailureShare(b.share)}
	}
	return nil
}

// alikeFailures is the number of items that may fail alike, of a model that was never
// answered, before the run stops. That many tell a mistake in every line from one that a few
// lines share.
const alikeFailures = 20

// endOptions returns the options that say when a run stops, or goes on, as its calls fail.
func (r *runner) endOptions() []batch.Option {
	opts := []batch.Option{batch.WithOutagePatience(r.flags.outagePatience)}
	if r.flags.keepGoing {
		opts = append(opts, batch.WithKeepGoing())
	} else {
		opts = append(opts, batch.WithAlikeFailures(alikeFailures))
	}
	if r.answeredBefore {
		opts = append(opts, batch.WithAnsweredBefore())
	}
	return append(opts, r.flags.maxFailures.options()...)
}
