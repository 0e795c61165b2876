// Package verdict says how a run has ended, why, and how to continue it.
//
// It promises an exit code that tells the gravest cause, a reason in one printable line, and an
// advice that names the flag or the variable to change. A run that can continue ends with the
// command that does so.
//
//	Facts of a run ─┐
//	Sums of its job ┴▶ Verdict.Of ─▶ exit.Ending
//	                     ├─ reason: why calls broke
//	                     ├─ items: the first that failed, by name
//	                     └─ hints: flags that may have caused bad lines
package verdict
