package verdict

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider"
)

// An item that is named by its line in the errors file is named as by the error from which the
// line was written.
func TestNamedByItsLine(t *testing.T) {
	t.Parallel()
	v := &Verdict{Facts: &Facts{Flags: &settings.Flags{Timeout: time.Minute}}}
	for name, e := range map[string]*provider.Error{
		"an answer":    {Provider: "openai", Kind: provider.Invalid, Status: 400, Code: "bad_shape", Message: "messages: want some"},
		"no code":      {Provider: "openai", Kind: provider.Server, Status: 500, Message: "no luck"},
		"no words":     {Provider: "openai", Kind: provider.Server, Status: 502},
		"a page":       {Provider: "openai", Kind: provider.TransportFault, Status: 403, Message: "an HTML page: Request blocked"},
		"an empty one": {Provider: "openai", Kind: provider.TransportFault, Status: 200},
		"a silence":    {Provider: "openai", Kind: provider.TransportFault, Status: 200, Err: errors.New("the stream fell silent for 1m0s")},
		"a cut body":   {Provider: "openai", Kind: provider.TransportFault, Status: 200, Message: "the body is cut short or not JSON"},
		"a key":        {Provider: "openai", Kind: provider.Unauthorized, Status: 401, Code: "invalid_api_key", Message: "Incorrect key sk-a***b"},
		"a timeout":    {Provider: "openai", Kind: provider.Timeout, Err: &url.Error{Op: "Post", URL: "http://x", Err: context.DeadlineExceeded}},
		"a connection": {Provider: "openai", Kind: provider.TransportFault, Err: &url.Error{Op: "Post", URL: "https://h/v1", Err: errors.New("connection reset by peer")}},
		"no address":   {Provider: "openai", Kind: provider.TransportFault, Err: errors.New("connection reset by peer")},
	} {
		l := journal.Line{CustomID: "a", Error: &journal.Failure{Code: e.Kind.String(), Message: e.Error()}, Headrace: journal.Headrace{Calls: 2}}
		if e.Status != 0 {
			l.Response = &journal.Response{StatusCode: e.Status}
		}
		if got, want := v.FailedAs("a", 2, faultOfLine(&l)), v.FailedAs("a", 2, e); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if e := faultOfLine(&journal.Line{Error: &journal.Failure{Code: "panic", Message: "panic: oh"}}); e != nil {
		t.Errorf("a panic: %v, want no call that failed", e)
	}
}

// The first items are named, and the rest are counted.
func TestNameFailed(t *testing.T) {
	t.Parallel()
	one := journal.Line{CustomID: "a", Error: &journal.Failure{Code: "panic"}}
	for _, c := range []struct {
		lines, all int
		want       string
	}{{1, 1, "a"}, {3, 3, "a, a, a"}, {3, 4, "a, a, a, …"}, {4, 4, "a, a, a, …"}} {
		v := &Verdict{Facts: &Facts{Flags: &settings.Flags{}}}
		lines := make([]journal.Line, c.lines)
		for i := range lines {
			lines[i] = one
		}
		v.NameFailed(lines, c.all)
		if got := v.Failed.String(); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.lines, c.all, got, c.want)
		}
	}
}
