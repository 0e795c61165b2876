package journal

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

// strictLine is a line of OpenAI's offline-batch output as its documentation lists
// the fields: those three and no other, but for our own under headrace.
type strictLine struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int             `json:"status_code"`
		RequestID  string          `json:"request_id"`
		Body       json.RawMessage `json:"body"`
	} `json:"response"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Headrace json.RawMessage `json:"headrace"`
}

// Whatever reads OpenAI's offline-batch files, by the letter, reads ours: answers,
// failures that the provider explained, and failures without an answer.
func TestFilesReadBackStrictly(t *testing.T) {
	blank := LineOf("a", Headrace{Line: 1, Model: "m", Key: "00112233445566778899aabbccddeeff"})
	answered, refused, lost := blank, blank, blank
	answered.Response = &Response{StatusCode: 200, RequestID: "req_1", Body: []byte("{\n \"choices\": []\n}")}
	refused.Response = &Response{StatusCode: 400, RequestID: "req_2", Body: []byte(`{"error":{"message":"no"}}`)}
	refused.Error = &Failure{Code: "invalid", Message: "no"}
	lost.Error = &Failure{Code: "timeout", Message: "no answer"}
	var file []byte
	for _, l := range []*Line{&answered, &refused, &lost} {
		file = AppendLine(file, l)
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.DisallowUnknownFields()
	var lines []strictLine
	for {
		var l strictLine
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 3 || bytes.Count(file, []byte("\n")) != 3 {
		t.Fatalf("%d lines in %q", len(lines), file)
	}
	for i, l := range lines {
		if l.ID == "" || l.CustomID != "a" || (l.Error == nil) != (i == 0) || (l.Response == nil) != (i == 2) {
			t.Errorf("line %d: %+v", i, l)
		}
	}
}
