package batch

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// tenant serves a lane that many runs share, and refuses for good on a run's own.
func tenant(ctx context.Context, in hinted) (string, error) {
	if err := pause(ctx, 10*time.Second); err != nil {
		return "", err
	}
	if in.pool != "shared" {
		return "", &provider.Error{Kind: provider.QuotaExhausted, Code: "insufficient_quota"}
	}
	return in.pool, nil
}

// heapInUse returns the bytes reachable now.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A Shared that serves runs for ever is no larger after 10,000 of them than after 2,000,
// though each has a lane of its own that stops: 8,000 runs leave less than 64 bytes each.
func TestSharedDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := NewShared(WithPlainLaw())
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		var after2000 uint64
		for i := range 10_000 {
			if i == 2000 {
				after2000 = heapInUse()
			}
			items := func(yield func(hinted) bool) {
				_ = yield(hinted{pool: fmt.Sprintf("tenant-%d", i)}) && yield(hinted{pool: "shared"})
			}
			if _, err := Run(t.Context(), items, tenant, WithShared(shared), WithConcurrency(2), WithReadAhead(2)); err == nil {
				t.Fatal("no lane has stopped")
			}
		}
		grown := int64(heapInUse()) - int64(after2000)
		if s, err := shared.Status(t.Context(), math.MaxInt); err != nil || s.Known > 100 {
			t.Errorf("%d lanes are known, and 91 were used within a quarter of an hour: %v", s.Known, err)
		}
		if t.Logf("grown by %d bytes", grown); grown > 512<<10 {
			t.Errorf("8,000 runs have left %d bytes", grown)
		}
	})
}
