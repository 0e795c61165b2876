// Bodies writes random chat bodies, one a line, with each dialect's translation:
//
//	{"body": …, "anthropic": {"sent": …}, "gemini": {"refused": "seed: …"}, "converse": …}
//
// The same flags give the same lines.
package main
