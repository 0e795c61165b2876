// Package rawjson checks JSON texts and finds values in them, without converting
// anything: its results point into the text.
//
//	{"model":"m","messages":[…],"max_tokens":50}
//	 ╰─ Name ╯╰Value╯                             one Parse: good or not, and the
//	 ╰──── Raw ─────╯                             members of the outermost object
//
// Promise: Parse agrees with encoding/json on every text, to the depth at which both
// give up, and reads a text once. It is for bodies that are passed on as they came,
// by the thousand a second, and the one reader of JSON on the client's side. The simulated
// provider reads with gjson, so that no fault of one hides in the other.
//
// A Walk, Lookup and Members go over a text without checking it. Their answers for a valid
// text are right; on any other text they end, with any answer.
package rawjson
