package node

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
)

// A patient process waits for a bucket that is away, and reports it once; any other returns an error. Both return an
// error for a lasting fault, such as a bucket that does not exist.
func TestABucketThatIsAwayIsWaitedFor(t *testing.T) {
	server := s3test.Start(t)
	clock := clockwork.NewFakeClock()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for clock.BlockUntilContext(ctx, 1) == nil {
			clock.Advance(time.Second)
		}
	}()
	defer func() { stop(); <-over }()
	all := func(*http.Request) bool { return true }
	said := 0
	cfg := Config{Clock: clock, Say: func(string) { said++ }}
	server.Fault(s3test.First(20, s3test.SlowDown, all))
	if _, err := openHome(ctx, server.Address("home"), &cfg); !errors.Is(err, store.ErrAway) {
		t.Errorf("%v", err)
	}
	server.Fault(s3test.First(20, s3test.SlowDown, all))
	cfg.Patient = true
	s, err := openHome(ctx, server.Address("home"), &cfg)
	if err != nil || said != 1 {
		t.Fatalf("%v, and it was said %d times", err, said)
	}
	if err := store.Close(s); err != nil {
		t.Error(err)
	}
	server.Fault(nil)
	if _, err := openHome(ctx, "s3://another-bucket?endpoint="+server.Endpoint, &cfg); err == nil || errors.Is(err, store.ErrAway) {
		t.Errorf("a bucket that is not there: %v", err)
	}
}
