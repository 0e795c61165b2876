package bus

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
)

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
	if err := work.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	news, err := admin.Listen(News, "", 16)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := admin.Asks(16)
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := watch.Listen(Keeper, "", 16)
	if err != nil {
		t.Fatal(err)
	}
	gives, err := watch.Gives("admin", 16)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Bus{admin, watch} { // the server knows all subscriptions
		if err := b.nc.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct {
		b     *Bus
		about string
	}{{watch, "job"}, {watch, LimitNews}, {work, LimitNews}} {
		if err := one.b.Say(News, one.about, 1); !errors.Is(err, ErrRole) {
			t.Errorf("%s says news of %s: %v", one.b.Name(), one.about, err)
		}
		if err := one.b.send(subject(one.b.space, newsWord, one.about), "denied"); err != nil { // past the client's own check
			t.Fatal(err)
		}
	}
	if err := watch.SendAsk(permit.Ask{Limit: "l", Worker: "denied"}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Bus{watch, work} { // the server has seen all that before
		if err := b.nc.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(work.Say(News, "job", 1), work.SendAsk(permit.Ask{Limit: "l", Worker: "work"}), work.Say(Keeper, "work", 1),
		work.SendGive(permit.Give{Worker: "admin"}), work.nc.FlushWithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	if w := next(t, news); w.About != "job" || string(w.Body) != "1" {
		t.Errorf("news of %s: %s", w.About, w.Body)
	}
	if a := next(t, asks); a.Worker != "work" {
		t.Errorf("%s asks", a.Worker)
	}
	if w := next(t, pictures); w.About != "work" {
		t.Errorf("a picture of %s", w.About)
	}
	if err := watch.nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	if len(gives.C) > 0 {
		t.Error("a watcher hears what the keeper gives")
	}
	if founder, err := watch.Founder(ctx); err != nil {
		t.Errorf("a watcher does not learn the founder: %q, %v", founder, err)
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
