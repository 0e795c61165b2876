// Package simulator is headrace sim: it serves provider/sim over HTTP, in the dialect of OpenAI or
// of another provider.
//
// It promises that it listens on this machine only, and that it prints what it counted when it
// ends. The address stands alone on its line, for scripts.
package simulator
