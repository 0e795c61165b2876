// Package price knows what tokens cost, for a plan and for a run alike.
//
// It promises that what has no price has none, which is never a price of nothing. What the user
// tells beats the list that this build has. No name of a model is guessed: the list's own rules
// match it, or it is a dated build of a name that they match.
//
//	--prices FILE ─┐
//	list.json ─────┼─ Read ─▶ Table ─┬─ Of(model) ───────────▶ a price, and whether it is the list's
//	--price IN,OUT ┘                 └─ Cost(model, usage) ──▶ USD, or not known
//
// tools/prices writes list.json from the data of genai-prices (MIT, by Pydantic), whose licence
// is in the file. The list is that of one version of the data and has its day. A vendor's models
// have the prices that this vendor asks; a server of one's own has none.
//
// Tokens that were read from a cache or written to one are part of the input. Where they have no
// price of their own they cost as much as any other input. A prompt longer than a step of its
// price reprices the whole request. The list does not know a provider's own tiers, caches of an
// hour, and sound or pictures in a prompt. Prices that change with the hour are the dearest.
package price
