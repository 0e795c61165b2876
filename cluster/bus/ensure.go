package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Settings of streams that are choices.
const (
	// DefaultAckWait is the time without a heartbeat after which the bus gives a delivery to another worker. A shorter time
	// mistakes a slow disk of the hub for a death; a longer one leaves the chunks of the dead idle.
	DefaultAckWait = 30 * time.Second
	// MaxBody bounds the body of queued work: a chunk's description is some 300 bytes.
	MaxBody = 64 << 10
	// maxAckPending bounds the deliveries that may be out: as many as are ever queued ahead.
	maxAckPending = 10_000
	// maxFetches bounds the workers that wait for work at once.
	maxFetches = 16_384
)

// streams records the known facts about the work stream.
type streams struct {
	life   string // when the stream was made, as the server says
	copies int    // its replicas
}

// Ensure makes missing streams, the consumer of tasks and the lease's bucket, and leaves existing ones as they are. Any
// number of users may call it at once. A caller that finds something gone calls it.
func (b *Bus) Ensure(ctx context.Context) error {
	if _, err := b.ensureWork(ctx); err != nil {
		return err
	}
	return b.EnsureLease(ctx)
}

// EnsureStreams is Ensure for processes that do not work. It leaves consumers to the workers, which know AckWait.
func (b *Bus) EnsureStreams(ctx context.Context) error {
	if _, err := b.ensureQueue(ctx); err != nil {
		return err
	}
	return b.EnsureLease(ctx)
}

func (b *Bus) workStream() string { return streamName(b.space, "work") }

func streamName(space, what string) string { return space + "-" + what }

// ensureWork makes the queue and the consumer of tasks, unless they exist. It then remembers the
// life of the queue, which is part of the names of consumers.
func (b *Bus) ensureWork(ctx context.Context) (*streams, error) {
	info, err := b.ensureQueue(ctx)
	if err != nil {
		return nil, err
	}
	known := streamsOf(info)
	if err := b.ensureConsumer(ctx, Tasks, "", known); err != nil {
		return nil, err
	}
	b.streams.Store(known)
	return known, nil
}

// workConfig returns the settings of the stream that holds all queued work.
func (b *Bus) workConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.workStream(), Subjects: []string{patternUnder(b.space, Chunks.String()), patternUnder(b.space, Tasks.String())},
		Description: "headrace: chunks and index tasks that nobody has finished",
		Retention:   jetstream.WorkQueuePolicy,
		// One message a subject, and a second one is refused: queueing twice does nothing, however late.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgSize: MaxBody,
		Metadata:   map[string]string{creatorKey: b.creator},
	}
}

// creatorKey is the metadata key of a stream under which its maker names the creator.
const creatorKey = "headrace-founder"

// Creator returns the word that distinguishes the store whose work is queued here from any other. The maker of the queue
// got it by [Bus.Settle]. "" means that there is no queue, or that its maker had no creator.
func (b *Bus) Creator(ctx context.Context) (string, error) {
	info, err := b.settingsOf(ctx, b.workStream())
	switch {
	case errors.Is(err, ErrGone):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("bus: founder: %w", err)
	}
	return info.Config.Metadata[creatorKey], nil
}

// ensureQueue makes the work stream unless it exists, and names its store unless another process has done so.
func (b *Bus) ensureQueue(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := b.ensureStream(ctx, b.workConfig())
	if err == nil && b.creator != "" && info.Config.Metadata[creatorKey] == "" {
		b.nameStoreOf(ctx, info.Config)
	}
	return info, err
}

// nameStoreOf names the store of a stream that an earlier version made. A server that rejects the update leaves
// the stream as that version made it.
func (b *Bus) nameStoreOf(ctx context.Context, config jetstream.StreamConfig) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	metadata := map[string]string{}
	maps.Copy(metadata, config.Metadata)
	metadata[creatorKey] = b.creator
	config.Metadata = metadata
	_, _ = b.js.UpdateStream(ctx, config)
}

// ensureStream makes a stream unless it exists, whatever its settings.
func (b *Bus) ensureStream(ctx context.Context, config jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	ctx, cancel := b.limited(ctx, 2*RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		config.Storage, config.Replicas = jetstream.FileStorage, b.replicas()
		stream, err = b.js.CreateStream(ctx, config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // somebody was quicker, with another number
			stream, err = b.js.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bus: stream %s: %w", config.Name, errorKind(err))
	}
	return stream.CachedInfo(), nil
}

// replicas returns the number of copies of a new stream: the configured one, else 3 in a cluster and 1 without.
func (b *Bus) replicas() int {
	if b.config.Replicas > 0 {
		return b.config.Replicas
	}
	if b.nc.ConnectedClusterName() == "" {
		return 1
	}
	return 3
}

// consumerName names the consumer that gives out tasks, or a job's chunks. Each job has its own, so that no job waits behind
// another. The name changes with each life of the stream: otherwise an acknowledgement of work in a lost stream would
// count for the work that has its number now.
func (s *streams) consumerName(k Kind, job string) string {
	if k == Tasks {
		return k.String() + "-" + s.life
	}
	return s.chunkConsumerPrefix() + escape(job)
}

// chunkConsumerPrefix returns the prefix of the names of all consumers of chunks.
func (s *streams) chunkConsumerPrefix() string { return Chunks.String() + "-" + s.life + "-" }

// knownStreams returns the known facts about the work stream, and asks the server if there are none.
func (b *Bus) knownStreams(ctx context.Context) (*streams, error) {
	if known := b.streams.Load(); known != nil {
		return known, nil
	}
	return b.ensureWork(ctx)
}

// Offer has the bus give out a job's chunks. Until then nobody can fetch them.
func (b *Bus) Offer(ctx context.Context, job string) error {
	if err := checkToken(job); err != nil {
		return fmt.Errorf("bus: offer chunks: %w", err)
	}
	known, err := b.ensureWork(ctx)
	if err != nil {
		return err
	}
	return b.ensureConsumer(ctx, Chunks, job, known)
}

// Offered returns the jobs whose chunks are given out, sorted.
func (b *Bus) Offered(ctx context.Context) (jobs []string, err error) {
	ctx, cancel := b.limited(ctx, 2*RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.workStream())
	if err != nil {
		return nil, fmt.Errorf("bus: jobs offered: %w", errorKind(err))
	}
	prefix := streamsOf(stream.CachedInfo()).chunkConsumerPrefix()
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		token, is := strings.CutPrefix(name, prefix)
		if job, err := unescape(token); is && err == nil {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	if err := names.Err(); err != nil {
		return nil, fmt.Errorf("bus: jobs offered: %w", errorKind(err))
	}
	return jobs, nil
}

// streamsOf returns what is known of the work stream from its description.
func streamsOf(info *jetstream.StreamInfo) *streams {
	return &streams{life: strconv.FormatInt(info.Created.UnixNano(), 36), copies: info.Config.Replicas}
}

// ensureConsumer makes the consumer that gives out tasks or a job's chunks, or updates an existing
// one. If a consumer of an earlier version is in the way, it deletes that one. The queue then
// gives out again all work that is not done.
func (b *Bus) ensureConsumer(ctx context.Context, k Kind, job string, known *streams) error {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	config := jetstream.ConsumerConfig{
		Durable: known.consumerName(k, job), FilterSubject: b.filter(k, job),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.config.AckWait,
		MaxDeliver: -1, MaxAckPending: maxAckPending, MaxWaiting: maxFetches,
		// A single hub that restarts gives out everything in the queue, so a worker that gets the work of another asks
		// first. Three hubs share the knowledge of what is given out.
		MemoryStorage: known.copies == 1,
	}
	_, err := b.js.CreateOrUpdateConsumer(ctx, b.workStream(), config)
	if isInTheWay(err) {
		for _, old := range []string{config.Durable, k.String() + "-" + known.life} {
			_ = b.js.DeleteConsumer(ctx, b.workStream(), old) // what is not there, or stays, the next line tells
		}
		_, err = b.js.CreateOrUpdateConsumer(ctx, b.workStream(), config)
	}
	if err != nil {
		return fmt.Errorf("bus: consumer of %s: %w", k, errorKind(err))
	}
	return nil
}

// Error numbers of the server: another consumer already gives out the same work; a consumer cannot be changed this way.
const (
	codeNotUnique     jetstream.ErrorCode = 10100
	codeNotChangeable jetstream.ErrorCode = 10012
)

// isInTheWay reports whether a consumer of an earlier version prevents a new one.
func isInTheWay(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeNotUnique || api.ErrorCode == codeNotChangeable)
}
