package run

import (
	"testing"
)

// Items that have not ended keep failing so far: none of them has failed.
func TestKeepFailing(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 item keeps failing", 2: "2 items keep failing"} {
		if got := keepFailingText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
