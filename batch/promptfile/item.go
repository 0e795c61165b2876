package promptfile

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// Item is one request of the input on its way through a run.
type Item struct {
	prompts.Request
	lane      string // the quota that its call draws on
	cost      batch.Cost
	maxTokens int // see Config.MaxTokens
}

// Result is the outcome of an item.
type Result = batch.Result[*Item, provider.Reply]

// Pool returns the pool in which the item waits.
func (it *Item) Pool() string { return it.lane }

// Cost returns what the item's call is expected to draw.
func (it *Item) Cost() batch.Cost { return it.cost }

// ItemKey returns the key under which the item is remembered, should it fail and not end.
func (it *Item) ItemKey() string { return it.Key }

// Asks returns the request for a provider's client.
func (it *Item) Asks() provider.Request { return asks(&it.Request, it.maxTokens) }
