// Package prices makes headrace prices, which shows the price that a run would use for a model,
// and its source. It calls nothing.
//
//	MODEL, --price, --prices, --provider ─▶ price.Table, of each vendor ─▶ a row for each price
package prices
