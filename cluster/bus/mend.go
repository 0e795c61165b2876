package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How often Mend looks before it believes that work is stuck, and how long it waits between two looks:
// the two numbers it compares are read one after the other, and what is done in between looks like a difference.
const (
	mendLooks = 3
	mendPause = 250 * time.Millisecond
)

// Mend looks for work that is in the queue and will never be given out, and has it given out. A server that
// came up on a damaged store, or after a loss of power, may believe of some that it was done. What is being worked on may be given
// out once more then, as after a restart. It is for the keeper, every now and then.
func (b *Bus) Mend(ctx context.Context) (mended bool, err error) {
	known, err := b.ensureWork(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range []Kind{Chunks, Tasks} {
		stuck, err := b.stuck(ctx, k, known)
		if err == nil && stuck {
			err = b.remake(ctx, k, known)
			mended = err == nil
		}
		if err != nil {
			return mended, fmt.Errorf("bus: mend the queue of %ss: %w", k, kind(err))
		}
	}
	return mended, nil
}

func (b *Bus) stuck(ctx context.Context, k Kind, known *streams) (bool, error) {
	for look := range mendLooks {
		if look > 0 {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-b.config.Clock.After(mendPause):
			}
		}
		queued, err := b.Queued(ctx, k, "")
		if err != nil {
			return false, err
		}
		known, err := b.inSight(ctx, k, known)
		if err != nil || queued <= known {
			return false, err
		}
	}
	return true, nil
}

// inSight is how much the consumer has given out, or will.
func (b *Bus) inSight(ctx context.Context, k Kind, known *streams) (int, error) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	consumer, err := b.js.Consumer(ctx, b.workStream(), known.consumer(k))
	if err != nil {
		return 0, err
	}
	info := consumer.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

// remake begins a consumer anew: it gives out all that is in the queue. Acknowledgements of
// what the old one gave out are good for the new one.
func (b *Bus) remake(ctx context.Context, k Kind, known *streams) error {
	limited, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	err := b.js.DeleteConsumer(limited, b.workStream(), known.consumer(k))
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	return b.ensureConsumer(ctx, k, known)
}
