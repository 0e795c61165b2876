// Package event makes words of a picture: what holds a run back, when it ends, what it
// spends and what fails, in sentences beside figures, for people and for programs.
//
//	observe.Picture ──Of──▶ Progress ─┬─ its JSON ─────────────────────▶ --progress json, /status
//	          Context ──┘             └─ CallsRow, SpentRow, FailedRow ─▶ panel, lines
//
// With Start, Notice, Transition, LongWait and Summary a Progress is what --progress json
// says, a line each; docs/progress.schema.json is the contract.
//
// It promises that whatever shows a run says the same: every face shows a Progress. A row of
// words has at most 70 cells, so that a terminal of 80 columns has room for it behind its
// name; what others said (models, servers) is in it as it can be read, and steers nothing.
// A number that is not known is null, and in words it is left out. The functions are pure;
// the names of the fields, and the words of what holds a run back, are a promise to scripts.
package event
