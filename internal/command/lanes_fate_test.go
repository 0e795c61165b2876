package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A lane of long calls does not come to hold the places of a lane of short ones. Each has 64 of its
// own, so the run is nearly as fast as both can be.
func TestSlowLaneStarvesNone(t *testing.T) {
	t.Parallel()
	const items, window, short, long = 4_000, 64, 100 * time.Millisecond, 2 * time.Second
	slow, base, stop := simOf(t, "--latency", long.String())
	defer stop()
	fast, other, stopOther := simOf(t, "--latency", short.String())
	defer stopOther()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  slow: {provider: openai, base-url: %q, api-key-env: none}\n  fast: {provider: openai, base-url: %q, api-key-env: none}\n", base, other))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	begin := time.Now()
	runLanes(t, 0, nil, somePrompts(t, items, "m"), "-o", out, "--config", config)
	took := time.Since(begin)
	checkResults(t, out, items)
	ideal := time.Duration(items * float64(time.Second) / window / (1/short.Seconds() + 1/long.Seconds()))
	t.Logf("%v, %.2f times the ideal %v; %d and %d answers", took, took.Seconds()/ideal.Seconds(), ideal, slow.Books().Accepted, fast.Books().Accepted)
	// With the places of both held by the slow lane, it has half of the items, and takes ten
	// times as long.
	if n := slow.Books().Accepted; n > items/5 {
		t.Errorf("the slow lane answered %d of %d items", n, items)
	}
}

// Two lanes of one account stop at the first word that its money is gone, and the three of another
// finish the run. If that is gone too, the run ends with 3. The summary names the accounts. At most the calls in flight meet the
// quota.
func TestAccountsEnd(t *testing.T) {
	const items, quota, window = 2_000, 500, 64
	for name, theirs := range map[string]struct{ quotaAfter, code int }{"one is gone": {0, 0}, "all are gone": {quota, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, base, stop := simOf(t, "--latency", "20ms", "--quota-after", fmt.Sprint(quota))
			defer stop()
			second, other, stopOther := simOf(t, "--latency", "20ms", "--quota-after", fmt.Sprint(theirs.quotaAfter))
			defer stopOther()
			config := "lanes:\n"
			for i, at := range []string{base, base, other, other, other} {
				account := map[string]string{base: "acme", other: "globex"}[at]
				config += fmt.Sprintf("  l%d: {provider: openai, base-url: %q, api-key-env: KEY_%s, account: %[3]s}\n", i, at, account)
			}
			out := filepath.Join(t.TempDir(), "out.jsonl")
			stderr := runLanes(t, theirs.code, map[string]string{"KEY_acme": "the-key-of-acme-123", "KEY_globex": "the-key-of-globex-456"}, somePrompts(t, items, "m"), "-o", out, "--config", lanesFile(t, config))
			for lane, stopped := range map[string]bool{"l0": true, "l1": true, "l2": theirs.code != 0, "l3": theirs.code != 0, "l4": theirs.code != 0} {
				if strings.Contains(stderr, lane+"/m: stopped") != stopped {
					t.Errorf("%s: want that it stopped: %v\n%s", lane, stopped, stderr)
				}
			}
			for account, stopped := range map[string]bool{"acme": true, "globex": theirs.code != 0} {
				if strings.Contains(stderr, "account "+account+": openai: quota_exhausted") != stopped || strings.Contains(stderr, "account        "+account+" has stopped:  l") != stopped {
					t.Errorf("want that the account %s stopped: %v\n%s", account, stopped, stderr)
				}
			}
			t.Logf("%v calls after the quota, and %v", first.Books().Errors, second.Books().Errors)
			b := first.Books()
			if b.Accepted != quota || b.Errors[sim.InsufficientQuota] == 0 || b.Errors[sim.InsufficientQuota] > 2*window {
				t.Errorf("%d answers and %d refusals: want as many as two windows hold at most", b.Accepted, b.Errors[sim.InsufficientQuota])
			}
			if theirs.code == 0 {
				checkResults(t, out, items)
			}
		})
	}
}

// A pool that prefers a lane waits while it is ill for less than after, and uses the next one from
// then on.
func TestOutageOfPreferredLane(t *testing.T) {
	for name, c := range map[string]struct {
		outage, after time.Duration
		uses          bool
	}{"short": {2 * time.Second, 8 * time.Second, false}, "long": {9 * time.Second, 3 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const items = 1_000
			first, base, stop := simOf(t, "--rpm", "12000", "--burst", "500ms", "--headers", "--latency", "20ms", "--outage", "1s+"+c.outage.String())
			defer stop()
			second, other, stopOther := simOf(t, "--rpm", "6000", "--burst", "500ms", "--headers", "--latency", "20ms")
			defer stopOther()
			config := fmt.Sprintf("lanes:\n  dear: {provider: openai, base-url: %q, api-key-env: none}\n  good: {provider: openai, base-url: %q, api-key-env: none}\npools:\n  p: {prefer: [good, dear], after: %v}\n", other, base, c.after)
			out := filepath.Join(t.TempDir(), "out.jsonl")
			begin := time.Now()
			runLanes(t, 0, nil, somePrompts(t, items, "m"), "-o", out, "--config", lanesFile(t, config))
			t.Logf("%v: %d and %d answers", time.Since(begin), first.Books().Accepted, second.Books().Accepted)
			checkResults(t, out, items)
			if got := second.Books().Received > 0; got != c.uses {
				t.Errorf("%d calls of the second tier", second.Books().Received)
			}
		})
	}
}
