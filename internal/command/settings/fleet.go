package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/provider/catalog"
)

// A Fleet holds the lanes and pools of the file of --config.
type Fleet struct {
	File  string
	Line  int        // of the word lanes
	Text  string     // of lanes and pools, as a file of their own
	Lanes []LaneSpec // in the order of the file
	Pools []PoolSpec // likewise; none: all lanes are one pool
}

// A LaneSpec says where the calls of a lane go, with which key, and at which limits.
type LaneSpec struct {
	Name   string
	Line   int               // in the file
	Flags  *Flags            // those of a run that has this lane alone
	Models map[string]string // the word of a line, and that of the lane; nil: it takes every model
	// Account names the lanes that share a fate, and Quota those that are one to the provider's
	// limits; "": the lane has its own.
	Account, Quota string
	Fate           string // the account, by default that of the first lane with its key; known once keys are
	SameAs         string // the model of vectors, by the name that lanes have in common
	Weight         int    // its share of the turns, while several lanes have room; 0: not set, which counts as 1
	Insecure       bool   // its key may be sent unencrypted
	Base           string // the lane of the file that this is the flex tier of; "": it is in the file itself
}

// A PoolSpec says which lines a pool takes, and by which lanes.
type PoolSpec struct {
	Name      string
	Line      int
	Endpoints []string // of its lines; nil: any
	Models    []string // patterns of their models; nil: any
	models    []*regexp.Regexp
	Tiers     [][]string    // lanes, by their names; those of a later tier wait for those before
	After     time.Duration // how long a tier is ill before the next is used
	Spill     time.Duration // how long a line may wait for a better tier that is well; 0: for as long as it takes
	By        string        // of a sticky pool: ByPrefix, or ByMetadata and the name of a field
	Patience  time.Duration // likewise: how long a line may wait for its home; 0: the pool is not sticky
}

// What decides the home of a line in a sticky pool.
const (
	ByPrefix   = "prefix"    // the beginning of its prompt
	ByMetadata = "metadata." // before the name of a field of its metadata
)

// DefaultPatience is the time for which a line of a sticky pool waits for its home. A cached prompt
// costs a tenth; a wait of seconds costs a batch nothing.
const DefaultPatience = 10 * time.Second

// DefaultAfter is the time for which the lanes of a tier are ill before the next tier is used.
// Most outages of a provider are shorter, and the wait costs less than a dearer provider.
const DefaultAfter = time.Minute

// LaneWindow is the most calls in flight on a lane whose concurrency is not set. It is what a run
// of a single lane has.
const LaneWindow = batch.DefaultConcurrency

// mostInFlight bounds the calls in flight on all lanes together, unless -c says otherwise: more
// sockets than most systems give a process.
const mostInFlight = 1024

// Takes reports whether lines of a model and an endpoint are the pool's.
func (p *PoolSpec) Takes(model, endpoint string) bool {
	isModel := func(glob *regexp.Regexp) bool { return glob.MatchString(model) }
	return (len(p.models) == 0 || slices.ContainsFunc(p.models, isModel)) &&
		(len(p.Endpoints) == 0 || slices.Contains(p.Endpoints, endpoint))
}

// globOf returns the expression that a pattern of models stands for. A * matches any text, with a
// slash in it as well: names of models have them.
func globOf(pattern string) *regexp.Regexp {
	text := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	return regexp.MustCompile(`^(?:` + text + `)$`)
}

// Serves returns the lane's own word for a model; false if the lane does not serve it.
func (l *LaneSpec) Serves(model string) (word string, ok bool) {
	if l.Models == nil {
		return model, true
	}
	word, ok = l.Models[model]
	return word, ok
}

// Calls reports whether the lane may request the model that it knows by that word.
func (l *LaneSpec) Calls(word string) bool {
	if l.Models == nil {
		return true
	}
	for _, own := range l.Models {
		if own == word {
			return true
		}
	}
	return false
}

// Window returns the most calls in flight on the lane.
func (l *LaneSpec) Window() int { return l.Flags.Concurrency }

// Machine names what the provider counts a call by. It is the quota, the lane and its model, or the lane
// alone where the limits cover all models together.
func (l *LaneSpec) Machine(word string) string {
	switch {
	case l.Quota != "":
		return l.Quota
	case l.Flags.Provider == ProviderSim || l.Flags.Vendor.ByAccount:
		return l.Name
	}
	return l.Name + "/" + word
}

// Config returns the settings of the lane in a run.
func (l *LaneSpec) Config() (batch.LaneConfig, error) {
	f := l.Flags
	c, err := batch.LaneOf(append(f.LaneOptions(), batch.WithAttemptTimeout(f.Timeout))...)
	c.Window, c.AttemptTimeout = l.Window(), f.Timeout
	return c, err
}

// Lane returns the lane of that name; nil if there is none.
func (f *Fleet) Lane(name string) *LaneSpec {
	for i := range f.Lanes {
		if f.Lanes[i].Name == name {
			return &f.Lanes[i]
		}
	}
	return nil
}

// Names lists the lanes.
func (f *Fleet) Names() (names []string) {
	for i := range f.Lanes {
		names = append(names, f.Lanes[i].Name)
	}
	return names
}

// UsedPools returns the pools, or the one of all lanes where the file has none.
func (f *Fleet) UsedPools() []PoolSpec {
	if len(f.Pools) > 0 {
		return f.Pools
	}
	return []PoolSpec{{Name: "all", Line: f.Line, Tiers: [][]string{f.Names()}}}
}

// Unused lists the names of the lanes that are in no pool.
func (f *Fleet) Unused() (names []string) {
	used := map[string]bool{}
	for _, p := range f.UsedPools() {
		for _, name := range slices.Concat(p.Tiers...) {
			used[name] = true
		}
	}
	return slices.DeleteFunc(f.Names(), func(name string) bool { return used[name] })
}

// Concurrency returns the sum of the most calls in flight on the used lanes. Lanes of one quota share one
// window, which counts once.
func (f *Fleet) Concurrency() (sum int) {
	seen, unused := map[string]bool{}, f.Unused()
	for i := range f.Lanes {
		lane := &f.Lanes[i]
		if quota := cmp.Or(lane.Quota, lane.Name); !seen[quota] && !slices.Contains(unused, lane.Name) {
			seen[quota] = true
			sum += lane.Window()
		}
	}
	return sum
}

// SpeaksOpenAI reports whether all answers are in the shape of OpenAI's.
func (f *Fleet) SpeaksOpenAI() bool {
	return !slices.ContainsFunc(f.Lanes, func(l LaneSpec) bool { return !l.Flags.IsOpenAIShaped() })
}

// simulated reports whether all lanes, and whether some lanes, are simulated providers.
func (f *Fleet) simulated() (all, some bool) {
	all = true
	for i := range f.Lanes {
		isSim := f.Lanes[i].Flags.Provider == ProviderSim
		all, some = all && isSim, some || isSim
	}
	return all, some
}

// ofLanes lists the flags of run that a lane of the file has as words.
var ofLanes = strings.Fields("provider base-url api-key-env api-key-file region project location resource preset sim-profile max-tokens " +
	"rpm tpm input-tpm output-tpm burst concurrency timeout price service-tier")

// ofLanesAlone lists the flags of run that contradict lanes in the file: they describe one lane.
var ofLanesAlone = strings.Fields("provider base-url insecure-http api-key-env api-key-file header region project location resource preset sim-profile " +
	"rpm tpm input-tpm output-tpm burst price")

// contradictions returns an error for each flag that describes a single lane while the file has lanes.
func (f *Flags) contradictions(from origins) (faults []error) {
	for _, name := range ofLanesAlone {
		if !f.All.Changed(name) {
			continue
		}
		source := map[string]string{"flag": "--" + name, "environment": environmentName(name), "file": name}[from[name]]
		laneWord := map[string]string{"insecure-http": "insecure", "header": "headers"}[name]
		line := fmt.Sprintf("%s:%d", f.Config, f.Fleet.Line)
		if from[name] == "file" {
			if flagLine := f.fileLines[name]; flagLine > 0 {
				line = fmt.Sprintf("%s:%d", f.Config, flagLine)
			}
			source = name + " stands outside of the lanes, and describes one"
			faults = append(faults, fmt.Errorf("%s: %s: set %s in each lane that needs it", line, source, cmp.Or(laneWord, name)))
			continue
		}
		faults = append(faults, fmt.Errorf("%s: lanes are given, and %s describes one: set %s in the lanes, or remove one of the two", line, source, cmp.Or(laneWord, name)))
	}
	return faults
}

// completeFleet checks the lanes and pools, and sets the flags of the run that depend on them.
func (f *Flags) completeFleet(from origins, env func(string) (string, bool)) error {
	if f.Fleet == nil {
		return nil
	}
	if !f.ManyLanes {
		return fmt.Errorf("%s:%d: lanes: only headrace run, submit, plan and lanes know them: name another file", f.Config, f.Fleet.Line)
	}
	faults := f.contradictions(from)
	for i := range f.Fleet.Lanes {
		lane := &f.Fleet.Lanes[i]
		faults = append(faults, lane.inFile(f.Config, lane.complete(f, env)))
	}
	f.InJob = f.InJob || f.Cluster != ""
	faults = append(faults, f.checkInJob())
	if errors.Join(faults...) == nil {
		faults = append(faults, f.Fleet.checkTierOffered(f.ServiceTier), f.Fleet.splitTiers(f.Spill))
	}
	if errors.Join(faults...) == nil {
		faults = append(faults, f.Fleet.check())
	}
	sum := max(1, f.Fleet.Concurrency())
	if f.All.Changed("concurrency") {
		f.Concurrency = min(f.Concurrency, sum)
	} else {
		f.Concurrency = min(sum, mostInFlight)
	}
	return errors.Join(faults...)
}

// complete fills in the flags of one lane and checks them, as Complete does for a run of one. Flags of the run
// hold where the lane sets none.
func (l *LaneSpec) complete(run *Flags, env func(string) (string, bool)) error {
	f := l.Flags
	ownTier := f.All.Changed("service-tier")
	l.inheritFlags(run)
	f.Planned, f.KeyEnvGiven, f.insecureHTTP = run.Planned, f.All.Changed("api-key-env"), l.Insecure
	f.Lanes.inherit(run.Lanes)
	f.Lanes.useLaw(f.Law)
	fault := f.Resolve(f.All, env)
	if fault == nil && f.Planned == nil {
		fault = f.locate(env)
	}
	l.inheritTier(!ownTier)
	f.useVendor(f.All, env)
	f.FewInFlight = false // the window says so
	f.ConfigBaseURL = f.ConfigBaseURL && !f.Vendor.Answers(f.BaseURL)

	faults := append(f.Lanes.check(f.Law), fault, f.checkKeyEnv(env), f.checkInClear(), f.checkHeaders(), checkPreset(f.Preset),
		f.checkLaw(false), f.checkLimits(), AtLeast("concurrency", f.Concurrency, 1), AtLeast("timeout", f.Timeout, time.Millisecond),
		OneOf("sim-profile", f.SimProfile, ProfileDemo, ProfileSilent, profileFast), l.checkModels(), f.checkTier(), l.readPrices())
	return errors.Join(faults...)
}

// inheritFlags sets the flags of the run that the lane does not set itself, without those that a lane has alone.
func (l *LaneSpec) inheritFlags(run *Flags) {
	lane := l.Flags.All
	run.All.VisitAll(func(flag *pflag.Flag) {
		ofRunAlone := flag.Name == "config" || flag.Name == "concurrency"
		if flag.Changed && !ofRunAlone && !slices.Contains(ofLanesAlone, flag.Name) && !lane.Lookup(flag.Name).Changed {
			_ = lane.Set(flag.Name, flag.Value.String()) // it took the value before
		}
	})
}

// readPrices makes the lane's table of prices. A price of its own takes precedence over all others.
func (l *LaneSpec) readPrices() (err error) {
	f := l.Flags
	if f.All.Changed("price") {
		if err = f.readPrices(&f.InputFlags, f.Preset); err == nil {
			f.Known.OfLane()
		}
		return err
	}
	return f.readPrices(&f.InputFlags, f.Preset)
}

// checkModels refuses a map of models with an empty name in it.
func (l *LaneSpec) checkModels() error {
	for _, model := range slices.Sorted(maps.Keys(l.Models)) {
		if model == "" || l.Models[model] == "" {
			return errors.New("models: a name is empty: write the model of the lines, and that of the lane")
		}
	}
	return nil
}

// flagWord matches a flag in a text for people.
var flagWord = regexp.MustCompile(`--([a-z][a-z-]+)`)

// InFile returns a complaint about a lane, with the file's line and the file's words in place of flags.
func (l *LaneSpec) InFile(file, text string) string {
	text = flagWord.ReplaceAllStringFunc(text, func(flag string) string {
		name := strings.TrimPrefix(flag, "--")
		switch {
		case name == "insecure-http":
			return "insecure: true"
		case name == "header":
			return "headers"
		case slices.Contains(ofLanes, name):
			return name
		}
		return flag
	})
	return fmt.Sprintf("%s:%d: lane %s: %s", file, l.Line, l.Name, text)
}

// inFile turns each line of an error about a lane into a complaint about the file; nil stays nil.
func (l *LaneSpec) inFile(file string, err error) error {
	if err == nil {
		return nil
	}
	var faults []error
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, file+":") {
			faults = append(faults, errors.New(line))
		} else {
			faults = append(faults, errors.New(l.InFile(file, line)))
		}
	}
	return errors.Join(faults...)
}

// check returns an error if lanes and pools contradict each other. It stops at the first, as others may
// follow from it.
func (f *Fleet) check() error {
	if all, some := f.simulated(); some && !all {
		return fmt.Errorf("%s:%d: lanes: some are simulated and some are not, and their answers would mix: use provider: sim for all of them or for none", f.File, f.Line)
	}
	machines := map[string]*LaneSpec{}
	for i := range f.Lanes {
		lane := &f.Lanes[i]
		if first := machines[lane.Quota]; lane.Quota != "" && first != nil {
			if err := first.checkSameQuota(lane); err != nil {
				return lane.inFile(f.File, err)
			}
			continue
		}
		if other := f.Lane(lane.Quota); other != nil {
			return lane.inFile(f.File, fmt.Errorf("quota: %s is the name of a lane: give the quota another name", lane.Quota))
		}
		machines[lane.Quota] = lane
		if _, err := lane.Config(); err != nil {
			return lane.inFile(f.File, errors.New(exit.PlainText(err)))
		}
	}
	for i := range f.Pools {
		if err := f.checkPool(&f.Pools[i]); err != nil {
			return fmt.Errorf("%s:%d: pool %s: %w", f.File, f.Pools[i].Line, f.Pools[i].Name, err)
		}
	}
	return nil
}

// checkSameQuota returns an error if two lanes of one quota differ in a setting that a quota has only once.
func (l *LaneSpec) checkSameQuota(other *LaneSpec) error {
	mine, myErr := l.Config()
	theirs, theirErr := other.Config()
	switch {
	case myErr != nil || theirErr != nil:
		return errors.Join(myErr, theirErr)
	case l.Flags.Name() != other.Flags.Name():
		return fmt.Errorf("quota: %s is also that of lane %s, whose provider is another: give them quotas of their own", l.Quota, l.Name)
	case l.Weight != other.Weight:
		return fmt.Errorf("quota: %s is also that of lane %s, whose weight differs: set the same in both, as they take one turn", l.Quota, l.Name)
	case mine != theirs:
		return fmt.Errorf("quota: %s is also that of lane %s, whose limits, concurrency, timeout or law differ: set the same in both", l.Quota, l.Name)
	case l.Account != other.Account:
		return fmt.Errorf("quota: %s is also that of lane %s, whose account is another: set the same in both", l.Quota, l.Name)
	}
	return nil
}

// noLane returns the error for a name in a pool that no lane has.
func (f *Fleet) noLane(name string) error {
	if slices.ContainsFunc(f.Pools, func(p PoolSpec) bool { return p.Name == name }) {
		return fmt.Errorf("%q is a pool: a pool has lanes, and no other pool", Clipped(name))
	}
	return fmt.Errorf("there is no lane %q: %sthe lanes are %s", Clipped(name), DidYouMean(Nearest(name, f.Names())), strings.Join(f.Names(), ", "))
}

// checkPool refuses lanes that do not exist or that are in a pool twice. All lanes of a quota must be in one
// tier of it.
func (f *Fleet) checkPool(p *PoolSpec) error {
	tierOf := map[string]int{}
	seen := map[string]bool{}
	for tier, lanes := range p.Tiers {
		for _, name := range lanes {
			lane := f.Lane(name)
			if lane == nil {
				return f.noLane(name)
			}
			if seen[name] {
				return fmt.Errorf("lane %s is there twice: keep one", name)
			}
			seen[name] = true
			if lane.Quota == "" {
				continue
			}
			if firstTier, known := tierOf[lane.Quota]; known && firstTier != tier {
				return fmt.Errorf("lanes of the quota %s are in two tiers, and have one limit: put them into one tier", lane.Quota)
			}
			tierOf[lane.Quota] = tier
		}
	}
	for i := range f.Lanes {
		lane := &f.Lanes[i]
		if _, known := tierOf[lane.Quota]; known && !seen[lane.Name] {
			return fmt.Errorf("lane %s has the quota %s, too, and is not in the pool: calls of a quota take turns among its lanes, so add it", lane.Name, lane.Quota)
		}
	}
	return nil
}

// IsOpen reports whether a lane's key would be sent unencrypted over a public network.
func (l *LaneSpec) IsOpen() bool {
	u, err := url.Parse(l.Flags.BaseURL)
	return err == nil && u.Scheme == "http" && !l.Insecure && catalog.For("", l.Flags.BaseURL).Name != "local"
}

// inherit copies the settings of the run that this lane does not set itself.
func (s *laneSettings) inherit(run *laneSettings) {
	for _, setting := range run.table() {
		section, _, within := strings.Cut(setting.name, ".")
		if !within || !run.given(setting.name) || s.given(setting.name) {
			continue
		}
		_ = s.fs.Set(setting.name, run.fs.Lookup(setting.name).Value.String()) // it took the value before
		s.lines[setting.name], s.lines[section] = run.lines[setting.name], run.lines[section]
	}
}
