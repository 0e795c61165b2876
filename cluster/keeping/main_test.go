package keeping

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTerm = time.Second

// newConfig returns the config of a process with a hub and a home in the test's folders.
func newConfig(t *testing.T) *Config {
	t.Helper()
	dir, clock := t.TempDir(), clockwork.NewRealClock()
	hub, err := bus.StartHub(bus.HubConfig{Dir: filepath.Join(dir, "hub"), Listen: "127.0.0.1:0", Say: func(err error) { t.Log(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Shutdown)
	b, err := bus.Connect(t.Context(), bus.Config{URL: hub.JoinURL(), Name: "test", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	s, err := store.Open(t.Context(), filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(s) })
	return &Config{
		Bus: b, Home: s, Clock: clock, Epochs: NewEpochs(s, clock), Term: testTerm, Seed: 1,
		SameHub: func(context.Context) (bool, error) { return false, nil },
		Status:  func(keeper.Status) {}, Say: func(string) {},
	}
}

// candidate is one that does not run yet.
func (cfg *Config) candidate(c Candidacy) *Candidate {
	one := *cfg
	one.Candidacy = c
	return New(one)
}
