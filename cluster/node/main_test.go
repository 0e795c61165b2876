package node

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/cluster/store/s3test"
)

func TestMain(m *testing.M) {
	s3test.Serve()
	goleak.VerifyTestMain(m)
}
