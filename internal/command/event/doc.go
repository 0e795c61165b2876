// Package event puts a snapshot into words, for people and for programs. It says in sentences
// and figures what holds a run back, when it ends, what it spends and what fails.
//
//	observe.Snapshot ──Of──▶ Progress ─┬─ its JSON ─────────────────────▶ --progress json, /status
//	         Context ───┘              └─ CallsRow, SpentRow, FailedRow ─▶ panel, lines
//
// A line of --progress json is a Start, Notice, Transition, LongWait, Summary or Progress;
// docs/progress.schema.json is the contract.
//
// It promises that every display of a run says the same: every face shows a Progress. A row
// of words has at most 70 cells, so that a terminal of 80 columns has room for it after its
// name. Texts of others (models, servers) are shown as printable text, and steer nothing. A
// number that is not known is null, and in words it is left out. The functions are pure. The
// names of the fields, and the words of what holds a run back, are a promise to scripts.
package event
