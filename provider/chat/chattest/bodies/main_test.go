package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/headrace/headrace/provider/chat/chattest"
)

// The same seed gives the same lines, and without extremes every dialect takes every body.
func TestWrite(t *testing.T) {
	var once, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&once, &again} {
		if err := write(to, 50, 3, chattest.Images|chattest.Schemas); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(once.Bytes(), again.Bytes()) {
		t.Error("one seed gave two files")
	}
	lines := bytes.Split(bytes.TrimSpace(once.Bytes()), []byte("\n"))
	for _, raw := range lines {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil || l.Anthropic.Sent == nil || l.Gemini.Sent == nil || l.Converse.Sent == nil {
			t.Errorf("%v: %s", err, raw)
		}
	}
	if len(lines) != 50 {
		t.Errorf("%d lines", len(lines))
	}
}
