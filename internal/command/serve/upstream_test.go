package serve

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// After SIGHUP the pools are there that clients have asked for, also those of two operations that had the same lanes before.
func TestEachOperationKeepsItsPoolAtSighup(t *testing.T) {
	w := &world.World{Stdout: io.Discard, Stderr: io.Discard, Clock: clockwork.NewFakeClock(), Env: func(string) (string, bool) { return "", false }}
	shared := must.Get(batch.NewShared())(t)
	defer shared.Close()
	u := &upstream{shared: shared, clock: w.Clock, requested: map[requestedPool]bool{}}
	use := func(text string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "lanes.yaml")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		f, fs := &settings.Flags{ManyLanes: true}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.Register(fs)
		must.Do(t, fs.Parse([]string{"-o", "x", "--config", file}))
		must.Do(t, f.Complete(fs, w.Env))
		must.Do(t, u.use(t.Context(), f, must.Get(account.Connect(t.Context(), w, f))(t)))
	}
	const lanes = "lanes:\n  a:\n    provider: sim\npools:\n  p:\n    spread: [a]\n"
	use(lanes)
	for _, operation := range []string{provider.Chat, provider.Responses} {
		if pool, _, err := u.pool(operation, "m"); pool != "p/m" || err != nil {
			t.Fatalf("%s waits in %s: %v", operation, pool, err)
		}
	}
	for _, operation := range []string{provider.Chat, provider.Responses} {
		use(lanes + "    lines: {endpoint: " + operation + "}\n")
		if of := u.lanes("p/m"); !slices.Equal(of, []string{"a"}) {
			t.Errorf("after SIGHUP, only %s is served: the lanes are %q", operation, of)
		}
	}
}
