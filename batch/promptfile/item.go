package promptfile

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// Item is one request of the input on its way through a run.
type Item struct {
	prompts.Request
	lane      string // one quota
	cost      batch.Cost
	maxTokens int // see Config.MaxTokens
}

// Result is what became of an item.
type Result = batch.Result[*Item, provider.Reply]

// Pool is where the item waits.
func (it *Item) Pool() string { return it.lane }

// Cost is what its call is expected to draw.
func (it *Item) Cost() batch.Cost { return it.cost }

// ItemKey is by which the item is remembered, should it fail and not end.
func (it *Item) ItemKey() string { return it.Key }

// Asks is what a provider's client is to be asked.
func (it *Item) Asks() provider.Request { return asks(&it.Request, it.maxTokens) }
