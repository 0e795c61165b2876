package serve

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/settings"
)

// A file of --config with flags of serve serves headrace run, too: settings knows all that run does not have.
func TestOfServeNamesEachFlag(t *testing.T) {
	own, run := pflag.NewFlagSet("serve", pflag.ContinueOnError), pflag.NewFlagSet("run", pflag.ContinueOnError)
	(&flags{}).register(own)
	(&settings.Flags{}).Register(run)
	own.VisitAll(func(f *pflag.Flag) {
		if isRuns := run.Lookup(f.Name) != nil; isRuns == slices.Contains(settings.OfServe, f.Name) {
			t.Errorf("--%s: of run %v, and in OfServe %v", f.Name, isRuns, !isRuns)
		}
	})
	for _, name := range settings.OfServe {
		if own.Lookup(name) == nil {
			t.Errorf("--%s is no flag of serve", name)
		}
	}
}

// SIGHUP names each changed flag that holds until the server ends: those of how it shows itself, not of how it calls.
func TestSighupNamesEachFixedFlag(t *testing.T) {
	f := &flags{}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.addTo(fs, &settings.Flags{})
	before := fixedFlags(fs)
	for name, value := range map[string]string{"metrics-addr": ":9500", "ctl": "off", "drain": "1s", "rpm": "5"} {
		if err := fs.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var changed []string
	for name, value := range fixedFlags(fs) {
		if before[name] != value {
			changed = append(changed, name)
		}
	}
	if slices.Sort(changed); !slices.Equal(changed, []string{"ctl", "drain", "metrics-addr"}) {
		t.Error(changed)
	}
}

// The flags on the command line are the same again at SIGHUP, lists too.
func TestSighupSetsTheSameFlagsAgain(t *testing.T) {
	first, again := pflag.NewFlagSet("serve", pflag.ContinueOnError), pflag.NewFlagSet("serve", pflag.ContinueOnError)
	(&flags{}).addTo(first, &settings.Flags{})
	(&flags{}).addTo(again, &settings.Flags{})
	if err := first.Parse([]string{"--host", "a.example,b.example", "--allow-origin", "https://app.example", "--header", "X-A=1,2", "--header", "X-B=3", "--drain", "90s"}); err != nil {
		t.Fatal(err)
	}
	for _, one := range givenFlags(first) {
		if err := again.Set(one[0], one[1]); err != nil {
			t.Fatal(err)
		}
	}
	first.VisitAll(func(f *pflag.Flag) {
		if now := again.Lookup(f.Name).Value.String(); now != f.Value.String() {
			t.Errorf("--%s: %q, then %q", f.Name, f.Value, now)
		}
	})
}
