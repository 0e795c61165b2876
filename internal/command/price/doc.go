// Package price knows what tokens cost, for a plan and for a run alike.
//
// It promises that a model without a price has an unknown cost, and never one of 0. What the
// provider says of a call beats every price, and the user's prices beat the list of this build. It
// guesses no name of a model: the list's own rules match it, or it is a dated build of a name that
// they match.
//
//	lane's price ──┐
//	--prices FILE ─┼─ Read ─▶ Table ─┬─ Of(model) ───────────────▶ a price, and its source
//	--price IN,OUT ┤                 └─ Cost(model, usage, when) ─▶ money and its source, or not known
//	list.json ─────┘
//
// A file of prices is in our own form, or that of genai-prices or litellm. refresh writes list.json from the data of genai-prices (MIT, by Pydantic), whose licence
// is in the file. The list comes from one version of the data, and carries the day of that
// version. A vendor's models have the prices that this vendor asks; a server of one's own has
// none.
//
// Tokens read from a cache or written to one are part of the input. Without a price of their own
// they cost as much as any other input. A prompt longer than a step of its price reprices the
// whole request. A price may hold from a day on, in some hours, or in a tier of service, which the
// answer names. In a tier that the price does not know the cost is not known. The list does not
// know sound or pictures in a prompt.
package price
