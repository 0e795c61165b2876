// Package prices is the command headrace prices: which price a run would use for a model, and
// where it is from. It calls nothing.
//
//	MODEL, --price, --prices, --provider ─▶ price.Table, of each vendor ─▶ a row for each price
package prices
