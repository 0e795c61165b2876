package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// answers is a way to the server on which each call gets that status; 0: it breaks.
type answers int

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: int(a), Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// A call is doubtful if it was sent and its answer did not come whole. An attempt that succeeded,
// a call that never left and an answer that refuses are not, whatever came before in the attempt.
func TestDoubtful(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	used := provider.Usage{InputTokens: 9, OutputTokens: 2, CachedTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 1}
	uses := func(r *provider.Recorder) { r.Usage(used) }
	for _, c := range []struct {
		name  string
		calls []answers
		then  func(*provider.Recorder)
		err   error
		want  provider.Doubtful
	}{
		{"no answer", []answers{0}, nil, io.ErrUnexpectedEOF, provider.Doubtful{Calls: 1}},
		{"no answer in time", []answers{0}, nil, fmt.Errorf("late: %w", context.DeadlineExceeded), provider.Doubtful{Calls: 1}},
		{"canceled", []answers{0}, nil, context.Canceled, provider.Doubtful{Calls: 1}},
		{"a body that broke", []answers{200}, uses, provider.TransportFault, provider.Doubtful{Calls: 1, Usage: used}},
		{"cut off by an error of another kind", []answers{200}, (*provider.Recorder).Cut, provider.Overloaded, provider.Doubtful{Calls: 1}},
		{"broken after a refusal", []answers{401, 0}, nil, provider.TransportFault, provider.Doubtful{Calls: 1}},
		{"only usage was told", nil, uses, provider.Timeout, provider.Doubtful{Calls: 1, Usage: used}},

		{"success", []answers{200}, uses, nil, provider.Doubtful{}},
		{"not sent at all", nil, nil, provider.Timeout, provider.Doubtful{}},
		{"never left", []answers{0}, (*provider.Recorder).Unsent, provider.Timeout, provider.Doubtful{}},
		{"no connection", []answers{0}, nil, dial, provider.Doubtful{}},
		{"a whole answer that is an error", []answers{200}, uses, provider.EmptyAnswer, provider.Doubtful{}},
		{"refused", []answers{500}, uses, provider.Server, provider.Doubtful{}},
		{"refused by a body that broke", []answers{502}, uses, io.ErrUnexpectedEOF, provider.Doubtful{}},
		{"led away", []answers{302}, nil, provider.TransportFault, provider.Doubtful{}},
		{"refused after one that broke", []answers{0, 401}, nil, provider.Unauthorized, provider.Doubtful{}},
	} {
		ctx, rec := provider.WithRecorder(t.Context())
		for _, way := range c.calls {
			rec.Cut() // what was said of an earlier call does not hold for the next
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://h/", nil)
			if resp, err := (&provider.Transport{Base: way}).RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		if c.then != nil {
			c.then(rec)
		}
		told := rec.Snapshot()
		if got := told.Doubtful(c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	var nobody *provider.Recorder
	nobody.Cut()
	nobody.Unsent()
}

// Of an answer that was cut off the usage is known from the byte on with which it had come whole,
// and never in part.
func TestTornUsage(t *testing.T) {
	for _, c := range []struct{ whole, ends string }{
		{heardAnswer, `"total_tokens":13}`},
		{`{"usage":{"input_tokens":9,"output_tokens":4},"content":[{"text":"\"usage\":{\"input_tokens\":1}"}],"stop_reason":"end_turn"}`, `"output_tokens":4}`},
		{"\n" + `{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4},"x":1}`, `Count":4}`},
		{`{"id":"a","meta":{"tokens":{"input_tokens":9,"output_tokens":4}}}`, `"output_tokens":4}}`},
	} {
		from := strings.Index(c.whole, c.ends) + len(c.ends)
		for n := range len(c.whole) {
			want, known := provider.Usage{}, n >= from
			if known {
				want = provider.Usage{InputTokens: 9, OutputTokens: 4}
			}
			if got, told := provider.TornUsage([]byte(c.whole[:n])); got != want || told != known {
				t.Errorf("%s: %+v, %t", c.whole[:n], got, told)
			}
			reply, e := provider.ReplyOf(http.StatusOK, nil, []byte(c.whole[:n]))
			if e == nil || reply.HasUsage != known || reply.Usage != want {
				t.Errorf("read as an answer, %s: %+v, %v", c.whole[:n], reply.Usage, e)
			}
		}
	}
	for _, other := range []string{"", " ", "<html>", `[{"usage":{"input_tokens":9}}`, `{"answer":{"usage":{"input_tokens":9}}`, `{"usage":7,`, `{"usage":{"input_tokens":09},`} {
		if got, told := provider.TornUsage([]byte(other)); told {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// A client of somebody else's over Transport meets an answer that breaks off: usage that had come
// by then is doubtful.
func TestTransportHearsTornUsage(t *testing.T) {
	torn := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, heardAnswer[:len(heardAnswer)-1])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	var broke error
	read := func(body io.Reader) { _, broke = io.Copy(io.Discard, body) }
	rec := heard(t, torn, read, &provider.Transport{Base: provider.NewHTTPTransport(1)}).Snapshot()
	if got := rec.Doubtful(broke); got != (provider.Doubtful{Calls: 1, Usage: provider.Usage{InputTokens: 9, OutputTokens: 4}}) {
		t.Errorf("%+v after %v, of %+v", got, broke, rec)
	}
}
