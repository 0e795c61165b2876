package bus

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A hub of ours is as it should be.
func TestCheckHub(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	r, err := b.Check(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Unsafe {
			t.Errorf("%+v", f)
		}
	}
	if !r.Hub || r.TLS || r.Replicas != 1 || r.Hubs != 1 || r.Version == "" || r.Way <= 0 || r.Kept <= 0 {
		t.Errorf("%+v", r)
	}
	for name := range b.js.StreamNames(testContext(t)).Name() {
		if strings.Contains(name, "check") {
			t.Errorf("the check leaves %s", name)
		}
	}
}

// A stream that somebody made otherwise is found.
func TestCheckForeignStream(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL()+"?space=other.team", "w1")
	ctx := testContext(t)
	config := b.workConfig()
	config.MaxMsgsPerSubject, config.DiscardNewPerSubject, config.MaxAge = 2, false, time.Hour
	if _, err := b.js.CreateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	r, err := b.Check(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"more than one message a subject", "messages end after 1h"} {
		if !found(r.Findings, want, true) {
			t.Errorf("%q was not found: %+v", want, r.Findings)
		}
	}
}

func found(findings []Finding, what string, unsafe bool) bool {
	for _, f := range findings {
		if strings.Contains(f.What, what) && f.Unsafe == unsafe && f.Why != "" {
			return true
		}
	}
	return false
}

// Each thing that is not as it should be is found, and nothing else.
func TestJudge(t *testing.T) {
	config := jetstream.StreamConfig{Replicas: 3, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, Storage: jetstream.FileStorage}
	good := func() (Report, facts) {
		return Report{Version: "2.15.2", Cluster: "c", Hub: true, TLS: true, Way: time.Millisecond},
			facts{secret: true, payload: 1 << 20, streams: []streamFacts{{name: "s", want: config, have: config}}}
	}
	if r, f := good(); len(judge(r, f)) > 0 {
		t.Fatalf("found %+v", judge(r, f))
	}
	cases := []struct {
		what   string
		unsafe bool
		change func(*Report, *facts)
	}{
		{"older than 2.10", true, func(r *Report, _ *facts) { r.Version = "2.9.25" }},
		{"older than 2.10", true, func(r *Report, _ *facts) { r.Version = "1.99.1" }},
		{"no TLS", true, func(r *Report, _ *facts) { r.TLS = false }},
		{"neither token nor user", true, func(_ *Report, f *facts) { f.secret = false }},
		{"synced", false, func(r *Report, _ *facts) { r.Hub = false }},
		{"a request takes 200ms", false, func(r *Report, _ *facts) { r.Way = 200 * time.Millisecond }},
		{"its clock is -3s ahead", false, func(r *Report, _ *facts) { r.ClockAhead = -3 * time.Second }},
		{"65536 bytes", true, func(_ *Report, f *facts) { f.payload = 65536 }},
		{"may keep 1000 bytes", true, func(_ *Report, f *facts) { f.limits.MaxStore = 1000 }},
		{"may have 1 streams", true, func(_ *Report, f *facts) { f.limits.MaxStreams = 1 }},
		{"stream s: 1 replicas", true, func(_ *Report, f *facts) { f.streams[0].have.Replicas = 1 }},
		{"away or behind: hub-3", true, func(_ *Report, f *facts) { f.streams[0].away = []string{"hub-3"} }},
		{"in memory", false, func(_ *Report, f *facts) { f.streams[0].have.Storage = jetstream.MemoryStorage }},
		{"retention", true, func(_ *Report, f *facts) { f.streams[0].have.Retention = jetstream.LimitsPolicy }},
		{"more than one message", true, func(_ *Report, f *facts) { f.streams[0].have.DiscardNewPerSubject = false }},
		{"more than one message", true, func(_ *Report, f *facts) { f.streams[0].have.MaxMsgsPerSubject = -1 }},
		{"end after", true, func(_ *Report, f *facts) { f.streams[0].have.MaxAge = time.Minute }},
		{"followers", false, func(_ *Report, f *facts) { f.streams[0].have.AllowDirect = true }},
	}
	for _, c := range cases {
		r, f := good()
		c.change(&r, &f)
		if got := judge(r, f); len(got) != 1 || !found(got, c.what, c.unsafe) {
			t.Errorf("%s: found %+v", c.what, got)
		}
	}
	r, f := good()
	r.TLS, f.secret, f.loopback = false, false, true
	if got := judge(r, f); len(got) > 0 {
		t.Errorf("on this machine alone: found %+v", got)
	}
	for _, odd := range []string{"", "v3", "2.x.1", "2.10.0", "3.0"} {
		if older(odd, 2, 10) {
			t.Errorf("%q is not older than 2.10", odd)
		}
	}
}
