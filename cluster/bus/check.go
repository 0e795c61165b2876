package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A Finding describes a defect and its consequence.
type Finding struct {
	// Unsafe findings must be put right; others cost time or repeated looks into the store.
	Unsafe bool
	What   string
	Why    string
}

// A Report describes a bus as seen from outside.
type Report struct {
	Server, Version string
	Cluster         string        // "" for a single server
	Hub             bool          // it is one of ours
	TLS             bool          // nobody on the way can read along
	Hubs            int           // servers that keep the queue, or would
	Replicas        int           // of the queue
	Way             time.Duration // there and back
	Kept            time.Duration // until a message was stored and had come back; 0: it was not
	ClockAhead      time.Duration // of the server's clock before ours; nothing depends on it
	Findings        []Finding
}

// facts holds the inputs of a judgement besides the Report itself.
type facts struct {
	loopback bool
	secret   bool // clients need a secret to be let in
	payload  int64
	limits   jetstream.AccountLimits
	streams  []streamFacts
}

type streamFacts struct {
	name       string
	want, have jetstream.StreamConfig
	away       []string // replicas that are not there, or far behind
}

// Bounds by which a bus is judged.
const (
	// slowWay is a third of the time in which an owner must confirm that he holds a chunk, and a
	// twentieth of a permit's life.
	slowWay = 100 * time.Millisecond
	// wrongClock is a difference that people will stumble over when they compare logs.
	wrongClock = 2 * time.Second
	// leastStore is the least storage that an account must allow: 10,000 chunks queued ahead for each of ten jobs.
	leastStore = 100 << 20
)

// Check reports what is unsafe about the bus, and why. Like any use of the bus it makes missing
// streams. An error means that the bus could not be asked.
func (b *Bus) Check(ctx context.Context) (Report, error) {
	r := Report{
		Server: b.nc.ConnectedServerName(), Version: b.nc.ConnectedServerVersion(), Cluster: b.nc.ConnectedClusterName(),
		Hub: strings.HasPrefix(b.nc.ConnectedServerName(), HubName),
	}
	_, noTLS := b.nc.TLSConnectionState()
	r.TLS = noTLS == nil
	f := facts{loopback: isLoopback(b.nc.ConnectedAddr()), secret: b.address.Token != "" || b.address.User != "", payload: b.nc.MaxPayload()}
	var err error
	if f.limits, r.Way, err = b.account(ctx); err != nil {
		if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			r.Findings = append(r.Findings, Finding{true, "JetStream is off", "chunks cannot be queued, and nobody can be keeper"})
			return r, nil
		}
		return r, fmt.Errorf("bus: check: %w", errorKind(err))
	}
	if b.Role() == WatchRole {
		r.Findings = append(r.Findings, Finding{false, "the token only permits watching", "the queue is not tested: check with an admin's line"})
		return r, nil
	}
	if err := errors.Join(b.EnsureStreams(ctx), b.checkStreams(ctx, &r, &f)); err != nil {
		r.Findings = append(r.Findings, Finding{true, "streams cannot be made or looked at", err.Error()})
	}
	if r.Kept, err = b.kept(ctx); err != nil {
		r.Findings = append(r.Findings, Finding{true, "a message that is stored: " + err.Error(), "work cannot be queued, and nobody can be keeper"})
	}
	r.Findings = append(r.Findings, judge(r, f)...)
	return r, nil
}

// account asks for the account's limits and measures the round trip.
func (b *Bus) account(ctx context.Context) (jetstream.AccountLimits, time.Duration, error) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	asked := b.config.Clock.Now()
	info, err := b.js.AccountInfo(ctx)
	if err != nil {
		return jetstream.AccountLimits{}, 0, err
	}
	return info.Limits, b.config.Clock.Since(asked), nil
}

// checkStreams records the settings of the queue and of the lease's bucket, for judge. Replicas
// and Hubs of the report are those of the queue, which comes first.
func (b *Bus) checkStreams(ctx context.Context, r *Report, f *facts) error {
	for _, want := range []jetstream.StreamConfig{b.workConfig(), b.leaseConfig()} {
		info, err := b.settingsOf(ctx, want.Name)
		if err != nil {
			return err
		}
		r.ClockAhead = info.TimeStamp.Sub(b.config.Clock.Now())
		if r.Replicas == 0 {
			r.Replicas, r.Hubs = info.Config.Replicas, hubs(info.Cluster)
		}
		f.streams = append(f.streams, streamFacts{name: want.Name, want: want, have: info.Config, away: away(info.Cluster)})
	}
	return nil
}

// hubs counts the servers that hold a stream.
func hubs(cluster *jetstream.ClusterInfo) int {
	if cluster == nil {
		return 1
	}
	return 1 + len(cluster.Replicas)
}

func away(cluster *jetstream.ClusterInfo) (names []string) {
	if cluster == nil {
		return nil
	}
	for _, peer := range cluster.Replicas {
		if peer.Offline || !peer.Current {
			names = append(names, peer.Name)
		}
	}
	return names
}

// settingsOf returns the settings and state of a stream, as the server reports them.
func (b *Bus) settingsOf(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	ctx, cancel := b.limited(ctx, RequestWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, errorKind(err)
	}
	return stream.CachedInfo(), nil
}

// judge returns the defects of a bus.
func judge(r Report, f facts) (found []Finding) {
	say := func(is, unsafe bool, what, why string) {
		if is {
			found = append(found, Finding{Unsafe: unsafe, What: what, Why: why})
		}
	}
	say(older(r.Version, 2, 10), true, "server "+r.Version+" is older than 2.10", "streams cannot begin at any number: a keeper could take a lost lease for his own")
	say(!f.loopback && !r.TLS, true, "no TLS", "anyone on the network path can read everything, the token too")
	say(!f.loopback && !f.secret, true, "neither token nor user", "everybody may be worker or keeper")
	say(!r.Hub, false, "not known whether each write is synced", "set sync_interval: always; what a server forgets costs repeated looks into the store")
	say(r.Way > slowWay, false, fmt.Sprintf("a request takes %v", r.Way.Round(time.Millisecond)), "owners of chunks have 0.3 s to answer, permits live 2 s")
	say(r.ClockAhead.Abs() > wrongClock, false, fmt.Sprintf("its clock is %v ahead of ours", r.ClockAhead.Round(time.Second)), "no clocks are compared; times in logs will not match")
	say(f.payload < MaxLease+(8<<10), true, fmt.Sprintf("messages have at most %d bytes", f.payload), "the keeper's lease does not fit")
	say(low(f.limits.MaxStore, leastStore), true, fmt.Sprintf("the account may keep %d bytes", f.limits.MaxStore), "10,000 chunks of each of ten jobs do not fit")
	say(low(int64(f.limits.MaxStreams), 2), true, fmt.Sprintf("the account may have %d streams", f.limits.MaxStreams), "there are two")
	for _, s := range f.streams {
		found = append(found, judgeStream(r, s)...)
	}
	return found
}

// low reports whether a limit is below need. 0 and -1 mean no limit.
func low(limit, need int64) bool { return limit > 0 && limit < need }

// judgeStream returns the defects of one stream. Most are differences from the settings with which
// [Bus.Ensure] would make it.
func judgeStream(r Report, s streamFacts) (found []Finding) {
	say := func(is, unsafe bool, what, why string) {
		if is {
			found = append(found, Finding{Unsafe: unsafe, What: "stream " + s.name + ": " + what, Why: why})
		}
	}
	say(r.Cluster != "" && s.have.Replicas < 3, true, fmt.Sprintf("%d replicas in a cluster", s.have.Replicas), "the death of one server stops everything")
	say(len(s.away) > 0, true, "replicas are away or behind: "+strings.Join(s.away, ", "), "the next death stops everything")
	say(s.have.Storage != jetstream.FileStorage, false, "it is kept in memory", "each restart costs looks into the store")
	say(s.have.Retention != s.want.Retention, true, fmt.Sprintf("retention %v, not %v", s.have.Retention, s.want.Retention), "what is done is given out again")
	say(s.have.MaxMsgsPerSubject != s.want.MaxMsgsPerSubject || s.have.DiscardNewPerSubject != s.want.DiscardNewPerSubject, true,
		"more than one message a subject", "a chunk that is queued twice is given out twice")
	say(s.have.MaxAge != 0, true, fmt.Sprintf("messages end after %v", s.have.MaxAge), "chunks vanish from the queue, and the lease")
	say(s.have.AllowDirect && !s.want.AllowDirect, false, "followers answer reads", "what they say may be old")
	return found
}

// older reports whether a version is before another; false if it cannot be read.
func older(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return a < major || a == major && b < minor
}

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
		return 0, fmt.Errorf("a stream for it cannot be made: %w", errorKind(err))
	}
	defer func() { _ = b.js.DeleteStream(context.WithoutCancel(ctx), streamName(b.space, name)) }() // it would end by itself
	began := b.config.Clock.Now()
	if _, err := b.js.Publish(ctx, subject(b.space, "check", name), body, jetstream.WithRetryAttempts(0)); err != nil {
		return 0, fmt.Errorf("it cannot be stored: %w", errorKind(err))
	}
	back, err := stream.GetLastMsgForSubject(ctx, subject(b.space, "check", name))
	if err != nil {
		return 0, fmt.Errorf("it does not come back: %w", errorKind(err))
	}
	if !bytes.Equal(back.Data, body) {
		return 0, errors.New("it comes back changed")
	}
	return b.config.Clock.Since(began), nil
}
