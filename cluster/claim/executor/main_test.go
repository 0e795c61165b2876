package executor

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(childVariable); told != "" {
		childMain(told)
		return
	}
	goleak.VerifyTestMain(m)
}
