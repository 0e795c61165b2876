package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What a server knows of a consumer's deliveries lies in obs/<consumer>/o.dat, without a checksum, and a
// server believes it: one flipped bit may have it ask for a hundred gigabytes, count to 2⁶³, or hold back work for a
// thousand years. Without the file it gives out again all that is in the queue.

// dropBroken removes what cannot be true, and says so.
func (h *Hub) dropBroken() {
	files, _ := filepath.Glob(filepath.Join(storeDir(h.config.Dir), "jetstream", "*", "streams", "*", "obs", "*", "o.dat")) // the pattern is good
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = checkDeliveries(data, h.config.Clock.Now())
		}
		if err != nil {
			h.log.tell(fmt.Errorf("bus: hub: %s is broken, and removed: %w", file, errors.Join(err, os.Remove(file))))
		}
	}
}

// Bounds of what may be true of deliveries.
const (
	// maxSequence is more messages than a queue has in ten years, at a thousand a second.
	maxSequence = 1 << 40
	// maxAhead is how far a delivery may lie in the future: one that was put back is dated by when it is given
	// out again, and clocks are corrected.
	maxAhead = time.Minute
	// maxAgo is how far it may lie in the past: nobody starts a hub again after that.
	maxAgo = 5 * 365 * 24 * time.Hour
)

// The file's layout is that of encodeConsumerState in nats-server's store.go: magic and version, then
// numbers of variable length. A point is a pair of sequences, the consumer's and the stream's.
const (
	stateMagic   = 22
	stateVersion = 2
)

type point struct{ consumer, stream uint64 }

func (p point) within(low, high point) bool {
	return p.consumer > low.consumer && p.consumer <= high.consumer && p.stream > low.stream && p.stream <= high.stream
}

// checkDeliveries says what of a consumer's state cannot be true; nil if all may be.
func checkDeliveries(data []byte, now time.Time) error {
	r := numbers{rest: data}
	if r.byte() != stateMagic || r.byte() != stateVersion {
		return errors.New("it has another format")
	}
	floor := point{r.unsigned(), r.unsigned()}
	delivered := point{r.unsigned(), r.unsigned()}
	if floor.consumer > delivered.consumer || floor.stream > delivered.stream || delivered.consumer > maxSequence || delivered.stream > maxSequence {
		return fmt.Errorf("acknowledged up to %v and delivered up to %v", floor, delivered)
	}
	if err := r.pending(floor, delivered, now); err != nil {
		return err
	}
	if err := r.redelivered(delivered); err != nil {
		return err
	}
	if r.broken || len(r.rest) > 0 {
		return errors.New("it is too short, or too long")
	}
	return nil
}

func (r *numbers) pending(floor, delivered point, now time.Time) error {
	n := r.unsigned()
	if n > maxAckPending || n > delivered.stream-floor.stream {
		return fmt.Errorf("%d deliveries between %v and %v", n, floor, delivered)
	}
	if n == 0 {
		return nil
	}
	base := r.signed()
	for range n {
		stream, consumer := floor.stream+r.unsigned(), floor.consumer+r.unsigned()
		at := time.Unix(base-r.signed(), 0)
		if p := (point{consumer, stream}); !p.within(floor, delivered) || at.After(now.Add(maxAhead)) || at.Before(now.Add(-maxAgo)) {
			return fmt.Errorf("a delivery of %v at %v, between %v and %v", p, at, floor, delivered)
		}
	}
	return nil
}

func (r *numbers) redelivered(delivered point) error {
	n := r.unsigned()
	if n > maxAckPending {
		return fmt.Errorf("%d redeliveries", n)
	}
	for range n {
		r.unsigned() // how far behind the floor its sequence is; it is looked up in what is pending
		if times := r.unsigned(); times > delivered.consumer {
			return fmt.Errorf("%d redeliveries of one message", times)
		}
	}
	return nil
}

// numbers reads them one after the other. What is not there is 0, and breaks it.
type numbers struct {
	rest   []byte
	broken bool
}

func (r *numbers) byte() byte {
	if len(r.rest) == 0 {
		r.broken = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *numbers) unsigned() uint64 {
	n, size := binary.Uvarint(r.rest)
	return took(r, n, size)
}

func (r *numbers) signed() int64 {
	n, size := binary.Varint(r.rest)
	return took(r, n, size)
}

func took[N int64 | uint64](r *numbers, n N, size int) N {
	if size <= 0 {
		r.broken, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}
