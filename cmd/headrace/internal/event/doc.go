// Package event is what a run tells people and programs of itself: the lines of
// --progress json, of which docs/progress.schema.json is the contract, and the sentences
// that the panel shows.
//
//	observe.Picture ──▶ Progress ─┬─▶ --progress json
//	                              ├─▶ the panel, plain lines
//	                              └─▶ OUTPUT.run.jsonl ──▶ headrace status --watch, --json
//
// A Progress holds sentences beside figures, so that another process that reads it shows
// the very same. Fields are added, and never change their meaning.
package event
