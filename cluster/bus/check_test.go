package bus

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/internal/must"
	"github.com/nats-io/nats.go/jetstream"
)

// A hub of ours is as it should be.
func TestCheckHub(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	r := must.Get(b.Check(testContext(t)))(t)
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
func TestCheckStreamOfOthers(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL()+"?space=other.team", "w1")
	ctx := testContext(t)
	config := b.workConfig()
	config.MaxMsgsPerSubject, config.DiscardNewPerSubject, config.MaxAge = 2, false, time.Hour
	must.Get(b.js.CreateStream(ctx, config))(t)
	r := must.Get(b.Check(ctx))(t)
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

// roleBus connects with the token of a role.
func roleBus(t *testing.T, hub *Hub, r Role) *Bus {
	t.Helper()
	b := connect(t, hub.RoleURL(r), string(r))
	if b.Role() != r {
		t.Fatalf("the role of %s is %s", r, b.Role())
	}
	return b
}

// The token of each role is let in, names the same hub, and no role's token follows from another's but the admin's.
func TestEachRoleIsLetIn(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	seen := map[string]bool{}
	for _, r := range Roles {
		b := roleBus(t, hub, r)
		if b.Identity() != identityOf(tokenForTests) {
			t.Errorf("%s: the hub is %q", r, b.Identity())
		}
		seen[b.address.Token] = true
	}
	if len(seen) != len(Roles) {
		t.Errorf("%d tokens of %d roles", len(seen), len(Roles))
	}
	for _, wrong := range []string{"", "another-token-of-nobody", string(WorkRole) + "-" + identityOf(tokenForTests) + "-x", tokenForTests + "x"} {
		_, err := Connect(testContext(t), Config{URL: Address{Hosts: []string{hub.server.Addr().String()}, Token: wrong}.String(), Name: "w"})
		if !errors.Is(err, ErrRefused) {
			t.Errorf("token %q: %v", wrong, err)
		}
	}
}

// A watcher hears what workers and the keeper say of themselves, and nothing else; what it says reaches nobody, also if
// its client sends it. A worker may do all but set limits.
func TestWhatARolePermits(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	ctx := testContext(t)
	admin, work, watch := roleBus(t, hub, AdminRole), roleBus(t, hub, WorkRole), roleBus(t, hub, WatchRole)
	must.Do(t, work.Ensure(ctx))
	news := must.Get(Listen[json.RawMessage](admin, News, "", 16))(t)
	asks := must.Get(admin.Asks(16))(t)
	pictures := must.Get(Listen[json.RawMessage](watch, Keeper, "", 16))(t)
	gives := must.Get(watch.Gives("admin", 16))(t)
	for _, b := range []*Bus{admin, watch} { // the server knows all subscriptions
		must.Do(t, b.nc.FlushWithContext(ctx))
	}
	for _, one := range []struct {
		b     *Bus
		about string
	}{{watch, "job"}, {watch, LimitNews}, {work, LimitNews}} {
		if err := one.b.Say(News, one.about, 1); !errors.Is(err, ErrRole) {
			t.Errorf("%s says news of %s: %v", one.b.Name(), one.about, err)
		}
		if err := one.b.send(subject(one.b.space, newsKind, one.about), "denied"); err != nil { // past the client's own check
			t.Fatal(err)
		}
	}
	must.Do(t, watch.SendAsk(permit.Ask{Limit: "l", Worker: "denied"}))
	for _, b := range []*Bus{watch, work} { // the server has seen all that before
		must.Do(t, b.nc.FlushWithContext(ctx))
	}
	must.Do(t, errors.Join(work.Say(News, "job", 1), work.SendAsk(permit.Ask{Limit: "l", Worker: "work"}), work.Say(Keeper, "work", 1),
		work.SendGive(permit.Give{Worker: "admin"}), work.nc.FlushWithContext(ctx)))
	if w := next(t, news); w.About != "job" || string(w.Body) != "1" {
		t.Errorf("news of %s: %s", w.About, w.Body)
	}
	if a := next(t, asks); a.Worker != "work" {
		t.Errorf("%s asks", a.Worker)
	}
	if w := next(t, pictures); w.About != "work" {
		t.Errorf("a picture of %s", w.About)
	}
	must.Do(t, watch.nc.FlushWithContext(ctx))
	if len(gives.C) > 0 {
		t.Error("a watcher hears what the keeper gives")
	}
	if creator, err := watch.Creator(ctx); err != nil {
		t.Errorf("a watcher does not learn the founder: %q, %v", creator, err)
	}
	if mustQueue(t, work, chunk(1), "body"); string(mustFetch(t, work, Chunks).Body) != "body" {
		t.Error("a worker does not get its chunk")
	}
	if r, err := watch.Check(ctx); err != nil || len(r.Findings) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A hub takes no token of a role as its own, and a client takes a token that only looks like one for an admin's.
func TestTheTokenOfARoleIsNoHubs(t *testing.T) {
	t.Parallel()
	if _, err := StartHub(HubConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0", Token: roleToken(tokenForTests, WorkRole)}); err == nil {
		t.Error("a hub begins with a worker's token")
	}
	for _, token := range []string{"", "work", "work-x-y", "watch-", tokenForTests} {
		if r, hub := roleOf(token); r != AdminRole || hub != "" {
			t.Errorf("%q is of role %s and hub %q", token, r, hub)
		}
	}
}

// next takes what comes on a feed.
func next[T any](t *testing.T, f *Feed[T]) (v T) {
	t.Helper()
	select {
	case v = <-f.C:
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	return v
}

// tried bounds the time for reaching a hub that lets nobody in. A machine that stalls has time for one try at least.
const tried = 10 * time.Second

// What stands between a machine and its bus is said by its name, with what to do about it, and without the token.
func TestUnreachedSaysWhy(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	good := hub.JoinURL()
	for name, c := range map[string]struct{ line, says string }{
		"a wrong token":    {strings.Replace(good, tokenForTests, "another-token-of-somebody", 1), "the token (or user and password) is wrong"},
		"no token":         {strings.Replace(good, tokenForTests+"@", "", 1), "the token (or user and password) is wrong"},
		"nobody listens":   {"nats://t@127.0.0.1:1", "nobody listens there"},
		"TLS where none":   {strings.Replace(good, "nats://", "tls://", 1), "it speaks no TLS"},
		"no host":          {"nats://t@no-such-host.invalid:4222", "there is no such host"},
		"no line":          {"http://x", "this is not a line to join by"},
		"nothing but hope": {"", "this is not a line to join by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(testContext(t), tried)
			defer stop()
			b, err := Connect(ctx, Config{URL: c.line, Name: "w"})
			if err == nil {
				b.Close()
				t.Fatal("it is let in")
			}
			f := Unreached(c.line, err)
			if !strings.Contains(f.What, c.says) || f.Why == "" || !f.Unsafe {
				t.Errorf("%+v of %v", f, err)
			}
			if text := f.What + f.Why + err.Error(); strings.Contains(text, tokenForTests) || strings.Contains(text, "another-token") {
				t.Errorf("the token is said: %s", text)
			}
		})
	}
}

// Unreached distinguishes a certificate of another authority from a wrong token.
func TestUnreachedByACertificate(t *testing.T) {
	t.Parallel()
	hub := startHub(t, func(c *HubConfig) { c.Listen, c.Advertise = "0.0.0.0:0", "127.0.0.1" })
	line := hub.JoinURL()
	at := strings.Index(line, "sha256:") + len("sha256:")
	other := line[:at] + strings.Repeat("0", 64) + line[at+64:]
	_, err := Connect(testContext(t), Config{URL: other, Name: "w"})
	if f := Unreached(other, err); err == nil || !strings.Contains(f.What, "certificate is not of the authority") {
		t.Errorf("%+v of %v", f, err)
	}
	without, _, _ := strings.Cut(line, "?")
	_, err = Connect(testContext(t), Config{URL: without, Name: "w"})
	if f := Unreached(without, err); err == nil || !strings.Contains(f.Why, "line") {
		t.Errorf("%+v of %v", f, err)
	}
}
