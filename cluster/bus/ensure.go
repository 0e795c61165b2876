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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Settings of streams that are choices.
const (
	// DefaultAckWait is after how long without a heartbeat a delivery is given to somebody else. Short of it a slow
	// disk of the hub looks like a death; longer, and the chunks of the dead lie idle.
	DefaultAckWait = 30 * time.Second
	// MaxBody bounds what is queued: a chunk's description is some 300 bytes.
	MaxBody = 64 << 10
	// maxAckPending is how many deliveries may be out: as many as are ever queued ahead.
	maxAckPending = 10_000
	// maxFetches is how many workers may wait for work at once.
	maxFetches = 16_384
)

// streams is what is known of those that are there.
type streams struct {
	life   string // of the work stream: when it was made, as the server says
	copies int    // of it
}

// Ensure makes what is missing of streams, the consumer of tasks and the lease's bucket. All that use the bus may do so, at
// once; what is there is left as it is. It is called by whoever finds something gone.
func (b *Bus) Ensure(ctx context.Context) error {
	if _, err := b.ensureWork(ctx); err != nil {
		return err
	}
	return b.EnsureLease(ctx)
}

// EnsureStreams is Ensure for those who do not work. Consumers are left to those who do: how long AckWait is, they
// have been told.
func (b *Bus) EnsureStreams(ctx context.Context) error {
	if _, err := b.ensureQueue(ctx); err != nil {
		return err
	}
	return b.EnsureLease(ctx)
}

func (b *Bus) workStream() string { return streamName(b.space, "work") }

func streamName(space, what string) string { return space + "-" + what }

func (b *Bus) ensureWork(ctx context.Context) (*streams, error) {
	info, err := b.ensureQueue(ctx)
	if err != nil {
		return nil, err
	}
	known := lifeOf(info)
	if err := b.ensureConsumer(ctx, Tasks, "", known); err != nil {
		return nil, err
	}
	b.streams.Store(known)
	return known, nil
}

func (b *Bus) workConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.workStream(), Subjects: []string{under(b.space, Chunks.String()), under(b.space, Tasks.String())},
		Description: "headrace: chunks and index tasks that nobody has finished",
		Retention:   jetstream.WorkQueuePolicy,
		// One message a subject, and a second one is refused: queueing twice does nothing, however late.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgSize: MaxBody,
		Metadata:   map[string]string{founderKey: b.founder},
	}
}

// founderKey is where a stream's metadata has the founder of whoever made it.
const founderKey = "headrace-founder"

// Founder is a word that tells the store whose work is queued here from any other, as whoever made the queue was told it by
// [Bus.Settle]. "" says that there is no queue, or that he was not told.
func (b *Bus) Founder(ctx context.Context) (string, error) {
	info, err := b.settingsOf(ctx, b.workStream())
	switch {
	case errors.Is(err, ErrGone):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("bus: founder: %w", err)
	}
	return info.Config.Metadata[founderKey], nil
}

// ensureQueue makes the work stream unless it is there, and says for which store it is unless somebody has.
func (b *Bus) ensureQueue(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := b.ensureStream(ctx, b.workConfig())
	if err == nil && b.founder != "" && info.Config.Metadata[founderKey] == "" {
		b.adopt(ctx, info.Config)
	}
	return info, err
}

// adopt says for which store a stream is that an earlier version has made. A server that does not let it be said is as
// good as that version.
func (b *Bus) adopt(ctx context.Context, config jetstream.StreamConfig) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	said := map[string]string{}
	maps.Copy(said, config.Metadata)
	said[founderKey] = b.founder
	config.Metadata = said
	_, _ = b.js.UpdateStream(ctx, config)
}

// ensureStream makes a stream unless it is there, whatever its settings.
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
		return nil, fmt.Errorf("bus: stream %s: %w", config.Name, kind(err))
	}
	return stream.CachedInfo(), nil
}

func (b *Bus) replicas() int {
	if b.config.Replicas > 0 {
		return b.config.Replicas
	}
	if b.nc.ConnectedClusterName() == "" {
		return 1
	}
	return 3
}

// consumer names the consumer that gives out tasks, or a job's chunks: each job has its own, so that none waits behind
// another's. It is a new one with each life of its stream: otherwise an acknowledgement of something in a
// stream that was lost would be taken for one of what has its number now.
func (s *streams) consumer(k Kind, job string) string {
	if k == Tasks {
		return k.String() + "-" + s.life
	}
	return s.ofChunks() + escape(job)
}

// ofChunks begins the names of all consumers of chunks.
func (s *streams) ofChunks() string { return Chunks.String() + "-" + s.life + "-" }

// knownStreams is what was found out before, or else now.
func (b *Bus) knownStreams(ctx context.Context) (*streams, error) {
	if known := b.streams.Load(); known != nil {
		return known, nil
	}
	return b.ensureWork(ctx)
}

// Offer has a job's chunks given out. Until then nobody can fetch them.
func (b *Bus) Offer(ctx context.Context, job string) error {
	if err := named(job); err != nil {
		return fmt.Errorf("bus: offer chunks: %w", err)
	}
	known, err := b.ensureWork(ctx)
	if err != nil {
		return err
	}
	return b.ensureConsumer(ctx, Chunks, job, known)
}

// Offered names the jobs whose chunks are given out, in order.
func (b *Bus) Offered(ctx context.Context) (jobs []string, err error) {
	ctx, cancel := b.limited(ctx, 2*RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.workStream())
	if err != nil {
		return nil, fmt.Errorf("bus: jobs offered: %w", kind(err))
	}
	prefix := lifeOf(stream.CachedInfo()).ofChunks()
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		token, is := strings.CutPrefix(name, prefix)
		if job, err := unescape(token); is && err == nil {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	if err := names.Err(); err != nil {
		return nil, fmt.Errorf("bus: jobs offered: %w", kind(err))
	}
	return jobs, nil
}

func lifeOf(info *jetstream.StreamInfo) *streams {
	return &streams{life: strconv.FormatInt(info.Created.UnixNano(), 36), copies: info.Config.Replicas}
}

func (b *Bus) ensureConsumer(ctx context.Context, k Kind, job string, known *streams) error {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	config := jetstream.ConsumerConfig{
		Durable: known.consumer(k, job), FilterSubject: b.filter(k, job),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.config.AckWait,
		MaxDeliver: -1, MaxAckPending: maxAckPending, MaxWaiting: maxFetches,
		// A single hub that starts again gives out all that is in the queue: whoever gets work that another holds asks
		// first. Three of them know from each other what is given out.
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
		return fmt.Errorf("bus: consumer of %s: %w", k, kind(err))
	}
	return nil
}

// Numbers of the server for a consumer that gives out what another one does, and for one that cannot be changed so.
const (
	codeNotUnique jetstream.ErrorCode = 10100
	codeNotSo     jetstream.ErrorCode = 10012
)

// isInTheWay reports whether a consumer cannot be made because of one that an earlier version has made.
func isInTheWay(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeNotUnique || api.ErrorCode == codeNotSo)
}

var _ nats.CustomDialer = (*dialer)(nil)
