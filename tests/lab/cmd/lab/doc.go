// Command lab prints how well laws of admission do against simulated providers, in virtual
// time.
//
// It promises the same table each time: nothing in it depends on the machine.
//
//	-scenario, -law, -seeds ─▶ lab.Table ─▶ ratio · refusals (other calls wasted)
//	-bank, -worlds, …       ─▶ bank.Report ─▶ the same, next to the targets
//
// The bank's numbers can be varied and its figures saved. A later report can show only what
// differs:
//
//	lab -bank -save old.json
//	lab -bank -against old.json
//	lab -bank -seeds 100,101,102 -rate 1.37 -chance 1.6 -cap 1.5
//	lab -bank -worlds '^W' or '^P': the worlds, or the weak points, alone
//	lab -trace 'W5 cap 8, 100' -seeds 1
package main
