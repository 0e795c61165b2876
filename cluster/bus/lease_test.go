package bus

import (
	"errors"
	"testing"
	"time"
)

// The lease is written only by who knows its revision, and an empty bucket has one that is its own.
func TestLease(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	one, two := connect(t, hub.JoinURL(), "w1"), connect(t, hub.JoinURL(), "w2")
	ctx := testContext(t)
	if _, err := one.ReadLease(ctx, patience); !errors.Is(err, ErrGone) {
		t.Fatalf("reading where there is no bucket: %v", err)
	}
	if _, err := one.UpdateLease(ctx, nil, 0, patience); !errors.Is(err, ErrGone) {
		t.Fatalf("writing where there is no bucket: %v", err)
	}
	for range 2 {
		if err := one.EnsureLease(ctx); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := one.ReadLease(ctx, patience)
	if err != nil || empty.Value != nil || empty.Revision == 0 {
		t.Fatalf("an empty bucket: %+v, %v", empty, err)
	}
	if _, err := two.UpdateLease(ctx, []byte("two"), 0, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("writing at revision 0: %v", err)
	}
	first, err := one.UpdateLease(ctx, []byte("one"), empty.Revision, patience)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.UpdateLease(ctx, []byte("two"), empty.Revision, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("writing what somebody else has written: %v", err)
	}
	second, err := one.UpdateLease(ctx, []byte("one again"), first, patience)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := two.ReadLease(ctx, patience); err != nil || string(held.Value) != "one again" || held.Revision != second {
		t.Errorf("read %+v, %v; revision %d was written", held, err, second)
	}
	if _, err := one.UpdateLease(ctx, make([]byte, MaxLease+1), second, time.Second); err == nil {
		t.Error("a lease that is too long was written")
	}
	if _, err := one.UpdateLease(ctx, make([]byte, MaxLease*9/10), second, patience); err != nil {
		t.Errorf("a long lease: %v", err)
	}
}

// A bucket that was lost and made again has other revisions, whether it was empty or not: nothing is written over what
// was seen of the old one. That holds in a space whose name is escaped, too.
func TestALeaseThatWasLost(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL()+"?space=other.team", "w1")
	ctx := testContext(t)
	var revisions []uint64
	for range 2 {
		eventually(t, "there is a bucket", func() bool { return b.EnsureLease(ctx) == nil }) // the server may still be deleting the old one
		for _, old := range revisions {
			if _, err := b.UpdateLease(ctx, []byte("late"), old, patience); !errors.Is(err, ErrTaken) {
				t.Errorf("writing over revision %d of a lost bucket: %v", old, err)
			}
		}
		empty, err := b.ReadLease(ctx, patience)
		if err != nil || empty.Value != nil {
			t.Fatalf("a new bucket: %+v, %v", empty, err)
		}
		written, err := b.UpdateLease(ctx, []byte("one"), empty.Revision, patience)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, empty.Revision, written)
		if err := b.js.DeleteStream(ctx, b.leaseStream()); err != nil {
			t.Fatal(err)
		}
	}
}
