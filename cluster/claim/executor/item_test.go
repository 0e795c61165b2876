package executor

import (
	"context"
	"reflect"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/provider"
)

// A line has all that the run knows of its item: no field is dropped on the way.
func TestLinesAreToldAll(t *testing.T) {
	var told promptfile.Result
	j := &Job{Line: func(r *promptfile.Result) (journal.Line, bool) { told = *r; return journal.Line{}, false }}
	given := Result{
		Index: 1, Item: &Item{Item: &promptfile.Item{}, job: j}, Value: provider.Reply{Status: 200}, Err: context.Canceled, Pool: "p", Lane: "l",
		Attempts: 2, Calls: 3, Usage: provider.Usage{InputTokens: 4}, Finish: "stop", Status: 200, RequestID: "r",
		Failures: []batch.Failure{{Calls: 1, Doubtful: provider.Doubtful{Calls: 1}}}, Queued: 6, Waited: 7, Latency: 8,
	}
	(&Executor{}).lineOf(&given)
	from, to := reflect.ValueOf(given), reflect.ValueOf(told)
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if from.Field(i).IsZero() || to.FieldByName(name).IsZero() {
			t.Errorf("%s is not told", name)
		}
		if name != "Item" && !reflect.DeepEqual(from.Field(i).Interface(), to.FieldByName(name).Interface()) {
			t.Errorf("%s: %v, not %v", name, to.FieldByName(name), from.Field(i))
		}
	}
}
