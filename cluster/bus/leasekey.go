package bus

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The lease is the key "keeper" of a bucket as NATS knows buckets, so that its tools can show it. It is read and written
// as the stream that a bucket is, for three reasons. The client's buckets begin at revision 1 again after a loss, an empty
// one has no revision, and their names have no "=", which [escape] writes for a dot in a space.
const (
	bucketPrefix = "KV_"
	keyPrefix    = "$KV."
	leaseKey     = "keeper"
)

// MaxLease bounds the lease's value: a snapshot of 64 KiB, as JSON writes it.
const MaxLease = 96 << 10

// ErrTaken is the kind of error of a write that expected another revision than there is. It was not done.
var ErrTaken = errors.New("another process has written it")

// A Held is what stands in the lease's bucket.
type Held struct {
	Value []byte // nil if nothing was written
	// Revision is the bucket's. It has one even if nothing was written to it.
	Revision uint64
}

func (b *Bus) leaseStream() string { return bucketPrefix + streamName(b.space, "keeper") }
func (b *Bus) leaseSubject() string {
	return keyPrefix + streamName(b.space, "keeper") + "." + leaseKey
}

// EnsureLease makes the bucket of the keeper's lease unless it is there. Its revisions begin anywhere: one
// of a bucket that was lost is none of the bucket that was made after it, but for a chance of one in 10⁷ in
// ten years of renewals.
func (b *Bus) EnsureLease(ctx context.Context) error {
	_, err := b.ensureStream(ctx, b.leaseConfig())
	return err
}

func (b *Bus) leaseConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.leaseStream(), Subjects: []string{keyPrefix + streamName(b.space, "keeper") + ".>"},
		Description:       "headrace: who is keeper",
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DenyDelete: true, AllowRollup: true,
		MaxMsgSize: MaxLease, FirstSeq: anyRevision(),
		// Not AllowDirect: a follower's answer may be an old one.
	}
}

// anyRevision is a number of 52 bits, so that anything that reads JSON can hold it; at least 2, so that
// what is before it is a revision, too.
func anyRevision() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return 2 + binary.BigEndian.Uint64(b[:])>>12
}

// ReadLease reads the lease, from the server that leads. The error is of kind [ErrGone] if the bucket is not there:
// then [Bus.EnsureLease] makes it, and that nobody is keeper does not follow.
func (b *Bus) ReadLease(ctx context.Context, wait time.Duration) (Held, error) {
	ctx, cancel := b.limited(ctx, wait)
	defer cancel()
	held, err := b.readLease(ctx)
	if err != nil {
		return Held{}, fmt.Errorf("bus: read the lease: %w", kind(err))
	}
	return held, nil
}

func (b *Bus) readLease(ctx context.Context) (Held, error) {
	bucket, err := b.bucket(ctx)
	if err != nil {
		return Held{}, err
	}
	msg, err := bucket.GetLastMsgForSubject(ctx, b.leaseSubject())
	if err == nil {
		return Held{Value: msg.Data, Revision: msg.Sequence}, nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return Held{}, err
	}
	// If it is written between these two requests, the revision is that of what was written: who
	// takes it for that of an empty bucket has still not seen any other since.
	info, err := bucket.Info(ctx)
	if err != nil {
		return Held{}, err
	}
	return Held{Revision: info.State.LastSeq}, nil
}

// bucket is asked for once: what is known of it stays true when it is lost and made again.
func (b *Bus) bucket(ctx context.Context) (jetstream.Stream, error) {
	if known := b.lease.Load(); known != nil {
		return *known, nil
	}
	bucket, err := b.js.Stream(ctx, b.leaseStream())
	if err == nil {
		b.lease.Store(&bucket)
	}
	return bucket, err
}

// UpdateLease writes the lease if the bucket's revision is still this one, and returns the new one. An error of kind
// [ErrTaken] says that it was not written; any other says nothing.
func (b *Bus) UpdateLease(ctx context.Context, value []byte, revision uint64, wait time.Duration) (uint64, error) {
	if len(value) > MaxLease {
		return 0, fmt.Errorf("bus: write the lease: %d bytes, more than %d", len(value), MaxLease)
	}
	ctx, cancel := b.limited(ctx, wait)
	defer cancel()
	acked, err := b.js.Publish(ctx, b.leaseSubject(), value,
		jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(b.leaseStream()), jetstream.WithExpectLastSequence(revision))
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return 0, fmt.Errorf("bus: write the lease: %w", ErrTaken)
	}
	if err != nil {
		return 0, fmt.Errorf("bus: write the lease: %w", kind(err))
	}
	return acked.Sequence, nil
}
