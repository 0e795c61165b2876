package part

import (
	"bytes"
	"strings"
	"testing"
)

// The address is the text after the word; a line that ends with the word names none, and the next one is read.
func TestFollowFindsAnAddress(t *testing.T) {
	for lines, want := range map[string]string{
		"busy\nlistening on http://h:1 now\nlistening on http://h:2\n": "http://h:1",
		"listening on \nlistening on http://h:1\n":                     "http://h:1",
		"listening on\n": "",
	} {
		var log bytes.Buffer
		address := make(chan string, 1)
		follow(strings.NewReader(lines), &log, "listening on", address)
		if got := <-address; got != want || log.String() != lines {
			t.Errorf("%q: address %q, want %q; log %q", lines, got, want, log.String())
		}
	}
}
