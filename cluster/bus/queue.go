package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Kind is a kind of queued work.
type Kind int

// Kinds of work.
const (
	Chunks Kind = iota
	Tasks       // indexing tasks: jobs whose inputs must be read through
)

// String returns the kind's token in subjects.
func (k Kind) String() string {
	if k == Tasks {
		return "task"
	}
	return "chunk"
}

// A Work names one piece of work: a chunk ("7", or "7.r1" in the first round of retries) or a task of a job.
type Work struct {
	Kind Kind   `json:"kind"`
	Job  string `json:"job"`
	Name string `json:"name"`
}

// String describes the work for people.
func (w Work) String() string { return fmt.Sprintf("%s %s of %s", w.Kind, w.Name, w.Job) }

func (w Work) subject(space string) string { return subject(space, w.Kind.String(), w.Job, w.Name) }

func (w Work) check() error {
	if err := checkToken(w.Job, w.Name); err != nil {
		return fmt.Errorf("bus: work %q of job %q: %w", w.Name, w.Job, err)
	}
	return nil
}

// parseWork reverses Work.subject. It takes any first token but that of tasks for that of chunks,
// because the stream has no other subjects.
func parseWork(space, subject string) (Work, error) {
	tokens := strings.Split(strings.TrimPrefix(subject, space+"."), ".")
	if len(tokens) != 3 {
		return Work{}, ErrName
	}
	w := Work{Kind: Chunks}
	if tokens[0] == Tasks.String() {
		w.Kind = Tasks
	}
	var err1, err2 error
	w.Job, err1 = unescape(tokens[1])
	w.Name, err2 = unescape(tokens[2])
	return w, errors.Join(err1, err2)
}

// Queue puts work into the queue. If the work is there already, given out or not, fresh is false and
// nothing changes. A body has at most [MaxBody] bytes.
func (b *Bus) Queue(ctx context.Context, w Work, body []byte) (fresh bool, err error) {
	if err := w.check(); err != nil {
		return false, err
	}
	fresh, err = b.queue(ctx, w, body)
	if errors.Is(err, ErrGone) { // the stream was deleted: make it anew, and try once more
		if _, err := b.ensureWork(ctx); err != nil {
			return false, err
		}
		fresh, err = b.queue(ctx, w, body)
	}
	if err != nil {
		return false, fmt.Errorf("bus: queue %v: %w", w, err)
	}
	return fresh, nil
}

// QueuedAtOnce bounds the works of one [Bus.QueueAll]: a bus has room for that many under way.
const QueuedAtOnce = 512

// QueueAll puts several works into the queue, in their order, and waits once for all of them. Work that is there
// already stays as it is. After an error some of the works may be in the queue.
func (b *Bus) QueueAll(ctx context.Context, works []Work, bodies [][]byte) error {
	if len(works) > QueuedAtOnce {
		return fmt.Errorf("bus: queue %d works: %d are the most", len(works), QueuedAtOnce)
	}
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	sent := make([]jetstream.PubAckFuture, len(works))
	for i, w := range works {
		err := w.check()
		if err == nil {
			sent[i], err = b.js.PublishAsync(w.subject(b.space), bodies[i], jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(b.workStream()))
		}
		if err != nil {
			return fmt.Errorf("bus: queue %v: %w", w, errorKind(err))
		}
	}
	for i, f := range sent {
		if err := awaitAck(ctx, f); err != nil {
			return fmt.Errorf("bus: queue %v: %w", works[i], errorKind(err))
		}
	}
	return nil
}

// awaitAck waits until the server reports that a message is in its stream, or was there before.
func awaitAck(ctx context.Context, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		if isDuplicate(err) {
			return nil
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// codeDuplicate is the server's error number for one message too many on a subject.
const codeDuplicate jetstream.ErrorCode = 10077

// queue sends one piece of work to the stream. It returns false if the stream has the work already.
func (b *Bus) queue(ctx context.Context, w Work, body []byte) (bool, error) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	_, err := b.js.Publish(ctx, w.subject(b.space), body, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(b.workStream()))
	if isDuplicate(err) {
		return false, nil
	}
	return err == nil, errorKind(err)
}

// isDuplicate reports whether the server refused a message because its subject already has one.
func isDuplicate(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeDuplicate && strings.Contains(api.Description, "per subject")
}

// Queued counts the tasks, or the chunks, of a job that are in the queue, given out or not. An error of kind [ErrGone]
// means that the job's chunks are not offered.
func (b *Bus) Queued(ctx context.Context, k Kind, job string) (n int, err error) {
	if k == Chunks {
		n, err = b.countChunks(ctx, job)
	} else {
		n, err = b.countSubjects(ctx, b.filter(k, job))
	}
	if err != nil {
		return 0, fmt.Errorf("bus: count %ss of job %q: %w", k, job, errorKind(err))
	}
	return n, nil
}

// countChunks asks a job's consumer: a job has thousands of chunks, and the server counts them as they come and go.
func (b *Bus) countChunks(ctx context.Context, job string) (int, error) {
	known, err := b.knownStreams(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	consumer, err := b.js.Consumer(ctx, b.workStream(), known.consumerName(Chunks, job))
	if err != nil {
		return 0, err
	}
	info := consumer.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

// countSubjects counts the queued messages under the subjects of a filter. The server's answer lists
// all these subjects, so it is for tasks: see countChunks.
func (b *Bus) countSubjects(ctx context.Context, filter string) (int, error) {
	ctx, cancel := b.limited(ctx, 2*RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.workStream())
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return 0, err
	}
	return len(info.State.Subjects), nil // one message a subject
}

// filter returns the pattern of a job's subjects; with an empty job that of all jobs.
func (b *Bus) filter(k Kind, job string) string {
	if job == "" {
		return patternUnder(b.space, k.String())
	}
	return patternUnder(b.space, k.String(), job)
}

// Purge removes a job's work from the queue and stops offering its chunks. It does not call back work that is given out.
func (b *Bus) Purge(ctx context.Context, k Kind, job string) error {
	if err := checkToken(job); err != nil {
		return fmt.Errorf("bus: purge: %w", err)
	}
	err := b.purge(ctx, b.filter(k, job))
	if err == nil && k == Chunks {
		err = b.stopOffering(ctx, job)
	}
	if err != nil {
		return fmt.Errorf("bus: purge job %q: %w", job, err)
	}
	return nil
}

// stopOffering deletes the consumer of a job's chunks, if it exists.
func (b *Bus) stopOffering(ctx context.Context, job string) error {
	known, err := b.knownStreams(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	err = b.js.DeleteConsumer(ctx, b.workStream(), known.consumerName(Chunks, job))
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return errorKind(err)
}

// purge removes all messages under these subjects. A stream that does not exist has none, so that
// is no error.
func (b *Bus) purge(ctx context.Context, subjects string) error {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.workStream())
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(subjects))
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return errorKind(err)
}

// fetchGrace is the time by which we wait longer than the server, for a message that it may just have sent.
const fetchGrace = time.Second

// Fetch waits for a task, or for a chunk of a job, and takes it. It returns false if none came within wait. If ctx ends
// after the server has given work out, that work comes again after AckWait.
func (b *Bus) Fetch(ctx context.Context, k Kind, job string, wait time.Duration) (*Delivery, bool, error) {
	known, err := b.knownStreams(ctx)
	if err != nil {
		return nil, false, err
	}
	delivery, err := b.fetch(ctx, known.consumerName(k, job), wait)
	if errors.Is(err, ErrGone) {
		b.streams.CompareAndSwap(known, nil) // the next one looks
	}
	if err != nil {
		return nil, false, fmt.Errorf("bus: fetch %s: %w", k, err)
	}
	return delivery, delivery != nil, nil
}

// fetchRoom is a fetch's room for messages: a fetch asks for one, and may receive a status as well.
// By default the client makes room for 65,536 with each fetch, half a megabyte.
const fetchRoom = 8

// fetch sends a request of its own. The client's Fetch limits the server's wait to 0.9 of a context's deadline, so that an
// empty queue and a silent server look alike. Each of the client's consumers also costs a request first.
func (b *Bus) fetch(ctx context.Context, consumer string, wait time.Duration) (*Delivery, error) {
	// The shared inbox of requests would not do: the connection always listens to it, so the server would
	// send work to a fetch that was given up.
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, errorKind(err)
	}
	request := fmt.Sprintf(`{"batch":1,"expires":%d}`, wait.Nanoseconds())
	pull := "$JS.API.CONSUMER.MSG.NEXT." + b.workStream() + "." + consumer
	if err = b.nc.PublishRequest(pull, inbox, []byte(request)); err != nil {
		_ = sub.Unsubscribe() // it ends with the connection otherwise
		return nil, errorKind(err)
	}
	limited, cancel := b.limited(ctx, wait+fetchGrace)
	defer cancel()
	msg, err := sub.NextMsgWithContext(limited)
	_ = sub.Unsubscribe()
	switch {
	case err == nil:
		return b.readDelivery(msg)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errorKind(err)
}

// Statuses with which the server answers a fetch instead of with work.
const (
	statusNone        = "404"
	statusExpired     = "408"
	statusConflict    = "409"
	statusNoResponder = "503"
)

// readDelivery reads the answer to a fetch. It returns nil, without an error, if no work came in
// time. The error is of kind [ErrGone] if the consumer may be gone, so that the next fetch looks.
func (b *Bus) readDelivery(msg *nats.Msg) (*Delivery, error) {
	switch status := msg.Header.Get("Status"); status {
	case "":
	case statusNone, statusExpired:
		return nil, nil
	case statusNoResponder, statusConflict:
		return nil, fmt.Errorf("%w: %s %s", ErrGone, status, msg.Header.Get("Description"))
	default:
		return nil, fmt.Errorf("answered by %s %s", status, msg.Header.Get("Description"))
	}
	work, err := parseWork(b.space, msg.Subject)
	if err != nil {
		return nil, fmt.Errorf("%s is on subject %q: %w", b.workStream(), msg.Subject, err)
	}
	return &Delivery{Work: work, Body: msg.Data, bus: b, reply: msg.Reply}, nil
}

// Words of JetStream about a delivery. The client's own methods send heartbeats and returns as messages, so the sender
// does not learn whether the server received them: a claim must know.
const (
	ack      = "+ACK"
	nak      = "-NAK"
	progress = "+WPI"
)

// A Delivery is work that the bus gave to this worker. The bus gives it to another worker after AckWait without a
// heartbeat, so a Delivery does not prove that the work is still ours.
type Delivery struct {
	Work Work
	Body []byte

	bus   *Bus
	reply string
}

// Working sends a heartbeat. It succeeds when the server has confirmed it. The server then gives the work to nobody else
// until AckWait after the heartbeat was sent, unless it was given out anew before. An error of kind [ErrGone] says that
// the queue has forgotten the delivery, or has no leader at present.
func (d *Delivery) Working(ctx context.Context) error {
	return d.request(ctx, progress, "heartbeat of")
}

// Done takes the work out of the queue. An error of kind [ErrGone] says that the queue has forgotten the delivery. It may
// have the work anew.
func (d *Delivery) Done(ctx context.Context) error { return d.request(ctx, ack, "done with") }

// Return puts the work back, to be given out again after a delay, or at once.
func (d *Delivery) Return(ctx context.Context, delay time.Duration) error {
	word := nak
	if delay > 0 {
		word = fmt.Sprintf(`%s {"delay":%d}`, nak, delay.Nanoseconds())
	}
	return d.request(ctx, word, "return")
}

// request sends a request, though the server would accept a message, because the server answers a request when it has taken it in.
func (d *Delivery) request(ctx context.Context, word, what string) error {
	ctx, cancel := d.bus.limited(ctx, RequestWait)
	defer cancel()
	if _, err := d.bus.nc.RequestWithContext(ctx, d.reply, []byte(word)); err != nil {
		return fmt.Errorf("bus: %s %v: %w", what, d.Work, errorKind(err))
	}
	return nil
}
