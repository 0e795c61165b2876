package promptfile

import (
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

// LineFor begins the output line of a request: what the request knows is filled in.
func LineFor(req *prompts.Request) journal.Line {
	return journal.LineOf(req.ID, journal.Headrace{Line: req.Line, Key: req.Key, Model: req.Model, Metadata: req.Metadata})
}

// CodeInvalidLine is the code of a line that is no request, in an errors file.
const CodeInvalidLine = "invalid_line"

// FailedLine is the line for the errors file of a line that is no request, where bad
// lines are skipped rather than the end of all.
func FailedLine(e *prompts.LineError) journal.Line {
	l := LineFor(&prompts.Request{Line: e.Line, ID: prompts.LineID(e.Line), Key: e.Key()})
	l.Error = &journal.Failure{Code: CodeInvalidLine, Message: e.Error()}
	return l
}
