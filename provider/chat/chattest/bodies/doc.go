// Bodies writes random chat bodies, one a line, with what each dialect makes of them:
//
//	{"body": …, "anthropic": {"sent": …}, "gemini": {"refused": "seed: …"}, "converse": …}
//
// The same flags give the same lines.
package main
