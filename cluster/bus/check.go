package bus

import (
	"context"
	"errors"
	"fmt"
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
		return r, fmt.Errorf("bus: check: %w", kind(err))
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
		return nil, kind(err)
	}
	return stream.CachedInfo(), nil
}
