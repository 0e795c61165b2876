package command

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/wire"
)

// A limit belongs to a provider, an account and a model, on any machine: two machines with one key share one limit,
// two with two keys have two, and neither limit shows its key.
func TestLimitsAreAnAccounts(t *testing.T) {
	const one, other = "sk-one-0123456789abcdef", "sk-other-0123456789abcdef"
	file := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(file, []byte(one+"\n"), 0o600))
	limit := func(env map[string]string, args ...string) string {
		t.Helper()
		calls := must.Get(settingsWith(t, env, settings.Vendor|settings.Keys|settings.Pace|settings.Config, args...).Connect())(t)
		defer calls.Close()
		return calls.Account.Limit("m")
	}
	key := func(k string) map[string]string {
		return map[string]string{"OPENAI_API_KEY": k, "K": k, "AWS_REGION": "eu-west-1"}
	}
	mine := limit(key(one))
	if !regexp.MustCompile(`^openai/m#[0-9a-f]{6}$`).MatchString(mine) || strings.Contains(mine, one[3:]) {
		t.Errorf("the limit is called %q", mine)
	}
	for _, same := range []string{limit(key(one)), limit(nil, "--api-key-file", file), limit(key(one), "--api-key-env", "K"), limit(key(one), "--base-url", "https://api.openai.com/v1")} {
		if same != mine {
			t.Errorf("the same account is %q and %q", mine, same)
		}
	}
	seen := map[string]string{mine: "mine"}
	for name, got := range map[string]string{
		"another key": limit(key(other)), "another address": limit(key(one), "--base-url", "https://proxy.example/v1"),
		"another path": limit(key(one), "--base-url", "https://proxy.example/team-a"), "another path, another key": limit(key(other), "--base-url", "https://proxy.example/team-a", "--api-key-env", "K"),
		"an organisation": limit(map[string]string{"OPENAI_API_KEY": one, "OPENAI_ORG_ID": "org-1"}), "a project": limit(map[string]string{"OPENAI_API_KEY": one, "OPENAI_PROJECT_ID": "org-1"}),
		"no key": limit(nil, "--base-url", "http://127.0.0.1:8000/v1"),
	} {
		if before, is := seen[got]; is {
			t.Errorf("%s and %s have one limit: %s", name, before, got)
		}
		seen[got] = name
	}
	for got, want := range map[string]string{
		limit(nil, "--base-url", "http://127.0.0.1:8000/v1/"):                             "openai/m@127.0.0.1:8000",
		limit(map[string]string{"OPENAI_API_KEY": "none"}, "--base-url", "http://h:1/v1"): "openai/m@h:1",
		limit(nil, "--provider", "sim"):                                                   "sim/all-models",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The job says when an item is given up, whatever the settings of the machine that calls it.
func TestAJobSaysWhenAnItemIsGivenUp(t *testing.T) {
	chosen := settingsWith(t, map[string]string{"HEADRACE_ITEM_TIMEOUT": "9m"}, settings.Vendor|settings.Input|settings.Tries, "--provider", "sim", "--max-attempts", "7", "--stream", "always", "--stream-idle", "9s").Bounds()
	worker := settingsWith(t, map[string]string{"HEADRACE_MAX_ATTEMPTS": "3", "HEADRACE_TIMEOUT": "1s"}, settings.Vendor|settings.Keys|settings.Pace|settings.Tries, "--provider", "sim", "--item-timeout", "1s", "--stream", "never")
	calls := must.Get(worker.For(chosen))(t)
	defer calls.Close()
	var lane machine.LaneConfig
	calls.Bound(&lane)
	if want := (machine.LaneConfig{MaxAttempts: 7, AttemptTimeout: batch.DefaultAttemptTimeout, ItemTimeout: 9 * time.Minute}); !reflect.DeepEqual(lane, want) {
		t.Errorf("%+v", lane)
	}
	if when, idle := calls.Flags.Streams(); when != wire.StreamAlways || idle != 9*time.Second {
		t.Errorf("streams %d, idle for %v", when, idle)
	}
}
