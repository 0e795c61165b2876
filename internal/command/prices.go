package command

import (
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/price"
)

// priceFlags are the flags about prices, which plan and run share, and their table.
type priceFlags struct {
	price, prices string
	known         price.Table
}

func (f *priceFlags) registerPrices(fs *pflag.FlagSet) {
	fs.StringVar(&f.price, "price", "", "USD per million tokens of input, output, cached input and cache writes, for models whose price is not known")
	fs.StringVar(&f.prices, "prices", "", `file of prices, which beat the built-in ones: {"model":{"input":2.5,"output":10,"cached":1.25,"cache_write":3}}`)
	nameValues(fs, map[string]string{"price": "IN,OUT[,CACHED[,WRITE]]", "prices": "FILE"})
}

// readPrices makes the table, with the built-in prices of the called vendor. The simulated
// provider and a server of one's own have none, no matter what they call their models.
func (f *priceFlags) readPrices(whom *inputFlags, preset string) (err error) {
	vendor := whom.whoAnswers(preset).Name
	if whom.provider == providerSim {
		vendor = ""
	}
	f.known, err = price.Read(f.prices, f.price, vendor)
	return err
}
