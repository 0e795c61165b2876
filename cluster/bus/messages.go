package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/nats-io/nats.go"
)

// Kinds of messages that are not stored, as they appear in subjects.
const (
	askKind    = "ask"    // <limit>.<worker>
	giveKind   = "give"   // <worker>
	coolKind   = "cool"   // <limit>
	doneKind   = "done"   // <job>
	statusKind = "status" // <worker>
	newsKind   = "news"   // <job>
	tellKind   = "tell"   // <worker>
	holdKind   = "hold"   // <worker>, a request
	keeperKind = "keeper" // <worker>, the state of all limits
)

// SendAsk sends the ask of one lane of a worker to the keeper of its limit.
func (b *Bus) SendAsk(a permit.Ask) error {
	if err := checkToken(a.Limit, a.Worker); err != nil {
		return fmt.Errorf("bus: ask: %w", err)
	}
	return b.send(subject(b.space, askKind, a.Limit, a.Worker), a)
}

// Asks returns the asks of all workers under all limits.
func (b *Bus) Asks(capacity int) (*Feed[permit.Ask], error) {
	return subscribe(b, patternUnder(b.space, askKind), capacity, readJSON[permit.Ask])
}

// SendGive sends the keeper's give to one worker.
func (b *Bus) SendGive(g permit.Give) error {
	if err := checkToken(g.Worker); err != nil {
		return fmt.Errorf("bus: give: %w", err)
	}
	return b.send(subject(b.space, giveKind, g.Worker), g)
}

// Gives returns the gives for one worker: for this life of this process, if worker is its name.
func (b *Bus) Gives(worker string, capacity int) (*Feed[permit.Give], error) {
	if err := checkToken(worker); err != nil {
		return nil, fmt.Errorf("bus: gives: %w", err)
	}
	return subscribe(b, subject(b.space, giveKind, worker), capacity, readJSON[permit.Give])
}

// SendCool sends the keeper's cool to all workers.
func (b *Bus) SendCool(c permit.Cool) error {
	if err := checkToken(c.Limit); err != nil {
		return fmt.Errorf("bus: cool: %w", err)
	}
	return b.send(subject(b.space, coolKind, c.Limit), c)
}

// Cools returns the cools of all limits.
func (b *Bus) Cools(capacity int) (*Feed[permit.Cool], error) {
	return subscribe(b, patternUnder(b.space, coolKind), capacity, readJSON[permit.Cool])
}

// A Message is about a job, or from a worker.
type Message[T any] struct {
	About string // the job, or the worker
	Body  T
}

// A Topic says what a message is about.
type Topic string

// Topics.
const (
	Done   Topic = doneKind   // [PartDone]: a chunk of a job has its part
	Status Topic = statusKind // [WorkerStatus]: what a worker is doing
	News   Topic = newsKind   // [Change]: a job was changed, cancelled, submitted
	Keeper Topic = keeperKind // [Picture]: the state of all limits, once a second from the keeper
)

// Say sends a message to the current listeners.
func (b *Bus) Say(t Topic, about string, body any) error {
	if err := errors.Join(checkToken(about), b.Role().checkPublish(string(t), about)); err != nil {
		return fmt.Errorf("bus: say: %w", err)
	}
	return b.send(subject(b.space, string(t), about), body)
}

// Listen returns the messages about one job, or of one worker; about all if about is "". Their bodies are of type T.
// States (Status, Keeper) of a later version may have fields of other types. Those fields are left out, since a state
// also shows that its sender lives, and its version.
func Listen[T any](b *Bus, t Topic, about string, capacity int) (*Feed[Message[T]], error) {
	at := patternUnder(b.space, string(t))
	if about != "" {
		if err := checkToken(about); err != nil {
			return nil, fmt.Errorf("bus: listen: %w", err)
		}
		at = subject(b.space, string(t), about)
	}
	prefix := len(subject(b.space, string(t))) + 1
	return subscribe(b, at, capacity, func(m *nats.Msg) (Message[T], error) {
		about, err1 := unescape(m.Subject[prefix:])
		body, err2 := readJSON[T](m)
		var field *json.UnmarshalTypeError
		if (t == Status || t == Keeper) && errors.As(err2, &field) {
			err2 = nil
		}
		return Message[T]{About: about, Body: body}, errors.Join(err1, err2)
	})
}

// A Feed delivers the messages of a subscription. A slow reader loses the oldest ones.
type Feed[T any] struct {
	// C is closed when the feed or the connection is.
	C <-chan T

	sub        *nats.Subscription
	ended      chan struct{}
	dropped    atomic.Uint64 // both are counted by the subscription's goroutine
	unreadable atomic.Uint64
}

// Dropped counts the messages lost because the reader was too slow.
func (f *Feed[T]) Dropped() uint64 { return f.dropped.Load() }

// Unreadable counts the messages that could not be read.
func (f *Feed[T]) Unreadable() uint64 { return f.unreadable.Load() }

// Close ends the feed and waits until nothing comes any more. Close of a nil feed does nothing.
func (f *Feed[T]) Close() {
	if f == nil {
		return
	}
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
			f.unreadable.Add(1)
		} else {
			f.dropped.Add(push(ch, v))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("bus: subscribe: %w", errorKind(err))
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
		return fmt.Errorf("bus: send: %w", errorKind(err))
	}
	return nil
}

// HoldsWait bounds the time in which an earlier claimant may answer: twice the worst round trip that permits
// would bear.
const HoldsWait = 300 * time.Millisecond

// Holds asks a worker whether it holds some work. answered is false if no answer arrived in time: the worker may be dead,
// cut off or busy, or we may be cut off, see [Bus.ReconnectedAt]. An error means that the question was not sent, or
// that ctx ended.
func (b *Bus) Holds(ctx context.Context, who string, w Work) (holds, answered bool, err error) {
	if err := errors.Join(checkToken(who), w.check()); err != nil {
		return false, false, fmt.Errorf("bus: ask who holds: %w", err)
	}
	question, err := json.Marshal(w)
	if err != nil {
		return false, false, fmt.Errorf("bus: ask who holds: %w", err)
	}
	limited, cancel := b.limited(ctx, HoldsWait)
	defer cancel()
	msg, err := b.nc.RequestWithContext(limited, subject(b.space, holdKind, who), question)
	switch err = errorKind(err); {
	case err == nil:
		return string(msg.Data) == "true", true, nil
	case ctx.Err() == nil && (errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrGone)):
		return false, false, nil
	}
	return false, false, fmt.Errorf("bus: ask %s whether he holds %v: %w", who, w, err)
}

// Answer answers the questions of others to the worker of this name. One goroutine calls holds, for one question after
// the other. Each asker waits for [HoldsWait] in all.
func (b *Bus) Answer(who string, holds func(Work) bool) (stop func(), err error) {
	if err := checkToken(who); err != nil {
		return nil, fmt.Errorf("bus: answer: %w", err)
	}
	ended := make(chan struct{})
	sub, err := b.nc.Subscribe(subject(b.space, holdKind, who), func(m *nats.Msg) {
		if w, err := readJSON[Work](m); err == nil {
			_ = m.Respond(fmt.Appendf(nil, "%t", holds(w))) // who asked will take it for silence
		}
	})
	if err != nil {
		return nil, fmt.Errorf("bus: answer: %w", errorKind(err))
	}
	sub.SetClosedHandler(func(string) { close(ended) })
	return func() {
		_ = sub.Unsubscribe() // it fails if it has ended
		<-ended
	}, nil
}

// Tell informs a worker that its work now belongs to another.
func (b *Bus) Tell(who string, t Taken) error {
	if err := checkToken(who); err != nil {
		return fmt.Errorf("bus: tell: %w", err)
	}
	return b.send(subject(b.space, tellKind, who), t)
}

// ListenTaken returns the takeovers announced to the worker of this name.
func (b *Bus) ListenTaken(who string, capacity int) (*Feed[Taken], error) {
	if err := checkToken(who); err != nil {
		return nil, fmt.Errorf("bus: told: %w", err)
	}
	return subscribe(b, subject(b.space, tellKind, who), capacity, readJSON[Taken])
}

// MaxName bounds the bytes of a job's, limit's or worker's name on the bus.
const MaxName = 200

// ErrName is the kind of error of a name that is empty or longer than [MaxName].
var ErrName = errors.New("want a name of 1 to 200 bytes")

// escape makes a name one token of a subject, where dots, stars, blanks and > have a meaning.
// Different names stay different: each byte except letters, digits, - and _ becomes = and two hexadecimal digits.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// unescape undoes escape. A token that escape did not write is an error.
func unescape(token string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if isPlain(token[i]) {
			b.WriteByte(token[i])
			continue
		}
		if token[i] != '=' || i+2 >= len(token) {
			return "", ErrName
		}
		c, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", ErrName
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

// checkToken returns ErrName if one of the names is empty or too long to be sent.
func checkToken(names ...string) error {
	for _, name := range names {
		if name == "" || len(name) > MaxName {
			return ErrName
		}
	}
	return nil
}

// subject joins a space, a kind of message and names to a subject.
func subject(space, kind string, names ...string) string {
	var b strings.Builder
	b.WriteString(space + "." + kind)
	for _, name := range names {
		b.WriteString("." + escape(name))
	}
	return b.String()
}

// patternUnder returns the pattern of all subjects with this beginning, for subscriptions.
func patternUnder(space, kind string, names ...string) string {
	return subject(space, kind, names...) + ".>"
}
