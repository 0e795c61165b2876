// Package price knows what tokens cost, for a plan and for a run alike.
//
// It promises that what has no price has none, which is never a price of nothing; that what
// the user tells beats the list that this build has, which is that of the providers' pages
// on one day; and that no name of a model is guessed but that of a dated build.
//
//	--prices FILE ─┐
//	list.json ─────┼─ Read ─▶ Table ─┬─ Of(model) ───────────▶ a price, and whether it is the list's
//	--price IN,OUT ┘                 └─ Cost(model, usage) ──▶ USD, or not known
//
// Cached tokens are part of what was read. Where they have no price of their own they cost as
// much as any other input, and so do those that are written to a cache: no answer's usage
// tells these apart here. What a provider's own tiers, hours and lengths of prompt make of a
// price is not known to it. List prices are those of who makes the model: of a server of one's
// own they say nothing, so that it is left out there.
package price
