package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// keptLife bounds the life of a check's stream, in case the check dies before deleting it.
const keptLife = time.Minute

// kept stores a message, checks that it comes back unchanged, and measures the time. It uses a stream of its own, so
// no worker reads the message and no revision of the lease is used up.
func (b *Bus) kept(ctx context.Context) (took time.Duration, err error) {
	body := make([]byte, 64) // random, so that no other message equals it
	_, _ = rand.Read(body)   // it never fails
	name := fmt.Sprintf("check-%x", body[:8])
	ctx, cancel := b.limited(ctx, 4*RequestWait) // it is four requests
	defer cancel()
	stream, err := b.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: streamName(b.space, name), Subjects: []string{subject(b.space, "check", name)}, Description: "headrace cluster check",
		Storage: jetstream.FileStorage, Replicas: b.replicas(), MaxAge: keptLife,
	})
	if err != nil {
		return 0, fmt.Errorf("a stream for it cannot be made: %w", kind(err))
	}
	defer func() { _ = b.js.DeleteStream(context.WithoutCancel(ctx), streamName(b.space, name)) }() // it would end by itself
	began := b.config.Clock.Now()
	if _, err := b.js.Publish(ctx, subject(b.space, "check", name), body, jetstream.WithRetryAttempts(0)); err != nil {
		return 0, fmt.Errorf("it cannot be stored: %w", kind(err))
	}
	back, err := stream.GetLastMsgForSubject(ctx, subject(b.space, "check", name))
	if err != nil {
		return 0, fmt.Errorf("it does not come back: %w", kind(err))
	}
	if !bytes.Equal(back.Data, body) {
		return 0, errors.New("it comes back changed")
	}
	return b.config.Clock.Since(began), nil
}
