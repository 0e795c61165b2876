package journal

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv names what a test binary that was started by a test is to do instead
// of the tests.
const childEnv = "JOURNAL_TEST_CHILD"

var children = map[string]func() int{}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}
