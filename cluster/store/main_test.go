package store

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/cluster/store/s3test"
)

func TestMain(m *testing.M) {
	s3test.Serve()
	if folder := os.Getenv(writerVariable); folder != "" {
		write(folder)
	}
	// The client waits up to this after a request that it does not make again.
	minio.DefaultRetryUnit = time.Millisecond
	goleak.VerifyTestMain(m)
}

func chance() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
