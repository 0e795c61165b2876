// Package price knows what tokens cost, for a plan and for a run alike.
//
// It promises that a model without a price has an unknown cost, and never one of 0. The user's
// prices beat the list of this build. It guesses no name of a model: the list's own rules match
// it, or it is a dated build of a name that they match.
//
//	--prices FILE ─┐
//	list.json ─────┼─ Read ─▶ Table ─┬─ Of(model) ───────────▶ a price, and whether it is the list's
//	--price IN,OUT ┘                 └─ Cost(model, usage) ──▶ USD, or not known
//
// tools/prices writes list.json from the data of genai-prices (MIT, by Pydantic), whose licence
// is in the file. The list comes from one version of the data, and carries the day of that
// version. A vendor's models have the prices that this vendor asks; a server of one's own has
// none.
//
// Tokens read from a cache or written to one are part of the input. Without a price of their own
// they cost as much as any other input. A prompt longer than a step of its price reprices the
// whole request. The list does not know a provider's own tiers, caches of an hour, and sound or
// pictures in a prompt. Of prices that change with the hour it has the highest.
package price
