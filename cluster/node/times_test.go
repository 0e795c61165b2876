package node

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store"
)

// The first process that works settles the times of a cluster. A process without given times takes them, and one with
// other times is refused. A process that does not work settles nothing.
func TestTheFirstWorkerSettlesTheTimes(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	for i, c := range []struct {
		told    Times
		settles bool
		want    Times
		refused string
	}{
		{Times{AckWait: time.Minute}, false, Times{time.Minute, DefaultTerm}, ""},
		{Times{Term: 6 * time.Second}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{}, false, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{AckWait: 30 * time.Second}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{AckWait: 2 * time.Second}, true, Times{}, "--ack-wait 2s: in this cluster it is 30s"},
		{Times{Term: 3 * time.Second}, true, Times{}, "--lease 3s: in this cluster it is 6s"},
		{Times{Term: 3 * time.Second}, false, Times{}, "--lease 3s: in this cluster it is 6s"},
	} {
		got, err := timesOf(ctx, s, c.told, c.settles, "me", time.Now())
		if c.refused != "" {
			if !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%d: %v, want %s", i, err, c.refused)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%d: %v %v, want %v", i, got, err, c.want)
		}
	}
	if err := s.Delete(ctx, timesName); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateBytes(ctx, s, timesName, []byte(`{"ack_wait":"soon"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := timesOf(ctx, s, Times{}, true, "me", time.Now()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("what is damaged gives %v", err)
	}
}

// Of many that begin at once with different times one settles them, and all others are refused.
func TestOneOfManySettlesTheTimes(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	const many = 8
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		all.Go(func() {
			_, errs[i] = timesOf(t.Context(), s, Times{AckWait: time.Duration(i+1) * time.Second}, true, "me", time.Now())
		})
	}
	all.Wait()
	settled := 0
	for _, err := range errs {
		switch {
		case err == nil:
			settled++
		case !errors.Is(err, ErrTimes):
			t.Error(err)
		}
	}
	if settled != 1 {
		t.Errorf("%d of %d have settled the times", settled, many)
	}
}
