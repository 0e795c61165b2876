// Package world holds everything outside the command that it touches: arguments, environment,
// streams, clock, signals and terminal.
//
// It promises that nothing but the main looks at its process. Tests make a World of their own.
//
// A Halt stops a run from outside, in two stages. The first signal, the deadline or a full disk
// drains: no call begins. A signal after that abandons the calls in flight.
package world
