// Package rawjson checks JSON texts and finds what stands in them, without making
// anything of it: what is found points into the text.
//
//	{"model":"m","messages":[…],"max_tokens":50}
//	 ╰─ Name ╯╰Value╯                             one Parse: good or not, and the
//	 ╰──── Raw ─────╯                             members of the outermost object
//
// Promise: Parse agrees with encoding/json on every text, to the depth at which both
// give up, and reads a text once. It is for bodies that are passed on as they came,
// by the thousand a second; whoever wants values from a text decodes it.
//
// A Walk, and the functions beside it, go over a text without checking it. What they say
// of a valid one is right; on any other they come to an end, and say what they like.
package rawjson
