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

// The lease is the key "keeper" of a NATS bucket, so that NATS tools can show it. This package reads and writes the bucket
// as a plain stream, for three reasons. The client's buckets begin at revision 1 again after a loss. An empty one has no
// revision. Their names have no "=", which [escape] writes for a dot in a space.
const (
	bucketPrefix = "KV_"
	keyPrefix    = "$KV."
	leaseKey     = "keeper"
)

// MaxLease bounds the lease's value: a snapshot of 64 KiB, as JSON writes it.
const MaxLease = 96 << 10

// ErrTaken is the kind of error of a write that expected another revision. The write was not done.
var ErrTaken = errors.New("another process has written it")

// LeaseContent is the content of the lease's bucket.
type LeaseContent struct {
	Value []byte // nil if nothing was written
	// Revision is the bucket's. It has one even if nothing was written to it.
	Revision uint64
}

func (b *Bus) leaseStream() string { return bucketPrefix + streamName(b.space, "keeper") }
func (b *Bus) leaseSubject() string {
	return keyPrefix + streamName(b.space, "keeper") + "." + leaseKey
}

// EnsureLease makes the bucket of the keeper's lease unless it exists. Its revisions begin at a random number. A revision
// of a lost bucket therefore hardly occurs in the next one: the chance is one in 10⁷ in ten years of renewals.
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

// anyRevision returns a random number of 52 bits, so that any reader of JSON can hold it. It is at least 2, so that the
// number before it is a revision, too.
func anyRevision() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return 2 + binary.BigEndian.Uint64(b[:])>>12
}

// ReadLease reads the lease, from the server that leads. The error is of kind [ErrGone] if the bucket does not exist:
// then [Bus.EnsureLease] makes it. Such an error does not mean that nobody is keeper.
func (b *Bus) ReadLease(ctx context.Context, wait time.Duration) (LeaseContent, error) {
	ctx, cancel := b.limited(ctx, wait)
	defer cancel()
	content, err := b.readLease(ctx)
	if err != nil {
		return LeaseContent{}, fmt.Errorf("bus: read the lease: %w", errorKind(err))
	}
	return content, nil
}

// readLease returns the lease's value, and the revision over which to write. An empty bucket has a
// revision too, so that of several first writes one succeeds.
func (b *Bus) readLease(ctx context.Context) (LeaseContent, error) {
	bucket, err := b.bucket(ctx)
	if err != nil {
		return LeaseContent{}, err
	}
	msg, err := bucket.GetLastMsgForSubject(ctx, b.leaseSubject())
	if err == nil {
		return LeaseContent{Value: msg.Data, Revision: msg.Sequence}, nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return LeaseContent{}, err
	}
	// If another process writes between these two requests, the revision is that of its write. A caller that takes
	// the revision for that of an empty bucket has still seen no other since.
	info, err := bucket.Info(ctx)
	if err != nil {
		return LeaseContent{}, err
	}
	return LeaseContent{Revision: info.State.LastSeq}, nil
}

// bucket asks for the bucket once: the answer stays true when the bucket is lost and made again.
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
// [ErrTaken] says that it was not written; any other error leaves that open.
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
		return 0, fmt.Errorf("bus: write the lease: %w", errorKind(err))
	}
	return acked.Sequence, nil
}
