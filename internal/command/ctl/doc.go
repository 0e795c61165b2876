// Package ctl changes a run of another process while it goes on: headrace ctl.
//
// It promises that only processes of the same user are heard, that one command is carried out at a time, and that a
// command is refused whole or carried out whole. A run without a socket goes on as it is.
//
//	headrace ctl OUTPUT WORD … ─ Parse ─▶ HTTP over a unix socket ─ Parse ─▶ Target.Do ─▶ Answer
//
// The socket lies in the folder of the user's runs, under a name that is made of the output's path. So there is nothing
// to look up, and nothing to clean up but a socket that a killed run has left: the next one removes it. The words are
// the same for a run and for headrace serve; a target refuses those that have no meaning for it.
package ctl
