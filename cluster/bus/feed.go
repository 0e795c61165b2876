package bus

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// A Feed delivers the messages of a subscription. A slow reader loses the oldest ones.
type Feed[T any] struct {
	// C is closed when the feed or the connection is.
	C <-chan T

	sub     *nats.Subscription
	ended   chan struct{}
	dropped atomic.Uint64 // both are counted by the subscription's goroutine
	foreign atomic.Uint64
}

// Dropped counts the messages lost because the reader was too slow.
func (f *Feed[T]) Dropped() uint64 { return f.dropped.Load() }

// Foreign counts the messages that could not be read.
func (f *Feed[T]) Foreign() uint64 { return f.foreign.Load() }

// Close ends the feed and waits until nothing comes any more.
func (f *Feed[T]) Close() {
	_ = f.sub.Unsubscribe() // it fails if it has ended
	<-f.ended
}

// subscribe opens a feed with room for capacity messages, decoded by read.
func subscribe[T any](b *Bus, subject string, capacity int, read func(*nats.Msg) (T, error)) (*Feed[T], error) {
	if capacity < 1 {
		return nil, fmt.Errorf("bus: subscribe: room for %d messages", capacity)
	}
	ch := make(chan T, capacity)
	f := &Feed[T]{C: ch, ended: make(chan struct{})}
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		if v, err := read(m); err != nil {
			f.foreign.Add(1)
		} else {
			f.dropped.Add(push(ch, v))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("bus: subscribe: %w", kind(err))
	}
	sub.SetClosedHandler(func(string) {
		close(ch)
		close(f.ended)
	})
	f.sub = sub
	return f, nil
}

// push adds v to a channel, and drops the oldest values to make room. A channel has one caller of push, so the room stays free.
func push[T any](ch chan T, v T) (dropped uint64) {
	for {
		select {
		case ch <- v:
			return dropped
		default:
		}
		select {
		case <-ch:
			dropped++
		default:
		}
	}
}

func readJSON[T any](m *nats.Msg) (T, error) {
	var v T
	err := json.Unmarshal(m.Data, &v)
	return v, err
}

// send publishes a message to the current listeners. Success does not mean that anybody received it.
func (b *Bus) send(subject string, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = b.nc.Publish(subject, data)
	}
	if err != nil {
		return fmt.Errorf("bus: send: %w", kind(err))
	}
	return nil
}
