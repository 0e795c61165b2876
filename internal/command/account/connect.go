package account

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/fleet"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// Account is the provider that a run calls.
type Account struct {
	Fleet          *fleet.Fleet
	Name           string      // of the provider: the first part of its lanes
	proof          auth.Source // what proves the caller's identity; nil: nothing does
	Proven         string      // the name of the variable or file that it comes from
	accountHeaders []string    // further header values that tell accounts apart: the vendor's
	quotaProject   string      // Google's project that calls count against, where its credentials name one
	Shared         bool        // all models draw on one quota

	tls       *tls.Config   // the authorities to trust and the certificate to show; nil: the usual ones
	added     []auth.Source // further secrets in headers
	addedFrom []string      // the variables and files that they come from

	*world.World
	flags *settings.Flags
	ctx   context.Context // of the search for a proof

	line      waitInServe // of headrace serve, if calls go through it
	refusedAt string      // the address of a headrace serve that did not let a run with --share in; "": none
	ServesAt  string      // the address of headrace serve; "": it is a run

	askedHost sync.Once // host is worked out once, and not for each call
	host      string

	Books  func() sim.Books // the simulated provider's own; nil for a real one
	Notice []notice         // what the user should know about it

	Spec   *settings.LaneSpec // what the file of --config says of it as a lane; nil: it is no lane of a file
	Lanes  []*Account         // those of the file, in its order; nil: there is only this account
	shares *organisations     // what answers of the lanes say of their organisations
}

// notice is something that the user should know.
type notice struct {
	Code event.Code
	Text string
}

// Note keeps what the user should know about the provider.
func (b *Account) Note(code event.Code, text string) {
	b.Notice = append(b.Notice, notice{code, text})
}

// Do makes one call.
func (b *Account) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	return b.Fleet.Do(ctx, r)
}

// A Passer makes calls whose bodies and answers are the client's own.
type Passer interface {
	Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error)
	List(ctx context.Context, header http.Header) (*http.Response, error)
}

// Passer returns the way to the provider of a machine's lane; nil: there is no such lane.
func (b *Account) Passer(lane string) Passer {
	if p, is := b.Fleet.Of(lane).(Passer); is {
		return p
	}
	return nil
}

// Secrets returns the texts that must never be shown, of all lanes.
func (b *Account) Secrets() []string {
	if b.Lanes == nil {
		return b.auth().Secrets()
	}
	var secrets []string
	for _, lane := range b.Lanes {
		secrets = append(secrets, lane.Secrets()...)
	}
	return secrets
}

// auth returns everything that proves the caller's identity. The provider's own source comes last,
// as a signature covers the rest.
func (b *Account) auth() auth.Source { return auth.Join(append(slices.Clone(b.added), b.proof)...) }

// key returns the key that stays the same for days and on each machine. It is the provider's, or else those
// in the user's headers; "" if there is none.
func (b *Account) key() string {
	if key := staticKey(b.proof); key != "" {
		return key
	}
	var keys []string
	for _, source := range b.added {
		if key := staticKey(source); key != "" {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, "\x00")
}

// Lane names the quota that a call of a model draws on. Most hosted providers count a quota
// for each model; the simulated one has a single quota for all.
func (b *Account) Lane(model string) string { return settings.LaneOf(b.Name, model, b.Shared) }

// Connect makes the client, or one for each lane of the file of --config. No call is made.
func Connect(ctx context.Context, w *world.World, flags *settings.Flags) (*Account, error) {
	if flags.Fleet != nil {
		return connectFleet(ctx, w, flags)
	}
	return connect(&Account{World: w, flags: flags, ctx: ctx, Name: flags.Name(), Shared: flags.Vendor.ByAccount})
}

// connect makes the client of one account, with its proof and headers. No call to the provider is made.
func connect(account *Account) (*Account, error) {
	flags := account.flags
	if flags.Provider == settings.ProviderSim {
		return account.simulate()
	}
	if err := account.useNetwork(); err != nil {
		return nil, err
	}
	if flags.Through != "" {
		return account, account.goThrough()
	}
	if err := account.findProof(); err != nil {
		return nil, err
	}
	if flags.FewInFlight {
		account.Note(event.LoweredConcurrency, fmt.Sprintf("some accounts of %s may have only %s in flight, so this run has no more: --concurrency N raises it",
			account.Name, words.Count(flags.Concurrency, "call")))
	}
	account.noteUnused()
	cfg := account.ClientConfig()
	var err error
	if cfg.Header, err = account.headers(); err != nil {
		return nil, err
	}
	if flags.Share && account.findServe() {
		return account, account.goThrough()
	}
	cfg.Auth = account.auth()
	if err := account.makeFleet(cfg); err != nil {
		return nil, account.addressFault(err)
	}
	return account, nil
}

// makeFleet gives the account its clients: one, or two if it uses both tiers of service.
func (b *Account) makeFleet(cfg wire.Config) error {
	client, err := wire.New(cfg)
	if err != nil {
		return err
	}
	lanes := []fleet.Lane{{Name: b.Name, Client: client}}
	if b.flags.ServiceTier == settings.TierAuto {
		cfg.Tier = b.flags.TierOfFlex()
		if client, err = wire.New(cfg); err != nil {
			return err
		}
		lanes = append(lanes, fleet.Lane{Name: settings.FlexLane(b.Name), Client: client})
	}
	b.Fleet, err = fleet.New(lanes...)
	return err
}

// ClientConfig returns the settings of a client for a real provider. An answer keeps its room in memory until
// the files have taken over its line.
func (b *Account) ClientConfig() wire.Config {
	v := &b.flags.Vendor
	cfg := v.Config(cmp.Or(b.flags.BaseURL, v.Base))
	cfg.Tier = b.flags.Tier()
	cfg.TLS, cfg.Text, cfg.Conns = b.tls, b.flags.WritesText(), b.flags.MostConcurrency()
	cfg.MaxBodies, cfg.HoldBodies = int64(b.flags.MaxBodies)*settings.Mebibyte, true
	cfg.Stream, cfg.StreamIdle = b.flags.Streams()
	if b.shares != nil && v.Organisation != "" {
		cfg.Heard = func(h http.Header) { b.shares.noteOrganisation(b, h.Get(v.Organisation)) }
	}
	return cfg
}

// headers returns the headers that all calls have: those of the dialect, of the vendor's variables, and of
// the user, who overrides both. Headers from variables go only to the vendor's own hosts.
func (b *Account) headers() (http.Header, error) {
	headers := http.Header{}
	if withHeader, hasHeader := b.flags.Dialect.(interface{ Header() http.Header }); hasHeader {
		headers = withHeader.Header()
	}
	headers.Set("User-Agent", userAgent())
	if !b.callsVendor() {
		return headers, b.addHeaders(headers)
	}
	if b.quotaProject != "" {
		headers.Set(b.flags.Vendor.Headers[quotaVariable], b.quotaProject) // unless the variable names another
	}
	for variable, header := range b.flags.Vendor.Headers {
		value, _ := b.Env(variable)
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return nil, exit.Refuse("%s has a character that headers cannot have: check it", variable)
		}
		if b.flags.IsInClear() {
			return nil, exit.Refuse("%v", b.flags.InClear("what is in "+variable))
		}
		headers.Set(header, value)
	}
	if err := b.addHeaders(headers); err != nil {
		return nil, err
	}
	for _, header := range b.flags.Vendor.Headers {
		if value := headers.Get(header); value != "" {
			b.accountHeaders = append(b.accountHeaders, header+": "+value)
		}
	}
	slices.Sort(b.accountHeaders)
	return headers, nil
}

// quotaVariable names the Google project whose quota the calls draw on.
const quotaVariable = "GOOGLE_CLOUD_QUOTA_PROJECT"

// configFault says why a client cannot be made, in words for people.
func configFault(err error) string {
	var e *provider.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// addressFault returns the error for an invalid address, with advice.
func (b *Account) addressFault(err error) error {
	text, where := strings.TrimPrefix(configFault(err), "base URL: "), b.flags.AddressSource()
	if !strings.Contains(b.flags.BaseURL, "://") {
		scheme := "https"
		if settings.IsLoopback(settings.HostOf("http://" + b.flags.BaseURL)) {
			scheme = "http"
		}
		return exit.Refuse("%s: %s: try %s://%s", where, text, scheme, exit.WithoutKeys(b.flags.BaseURL))
	}
	return exit.Refuse("%s: %s", where, text)
}

// simulate connects the account to a simulated provider in this process. It uses the same client as for real
// providers.
func (b *Account) simulate() (*Account, error) {
	cfg, err := b.SimConfig()
	if err != nil {
		return nil, err
	}
	server := sim.New(cfg, b.Clock)
	when, idle := b.flags.Streams()
	b.Shared, b.Books = true, server.Books
	err = b.makeFleet(wire.Config{
		Dialect: b.flags.Dialect, Text: b.flags.WritesText(), Stream: when, StreamIdle: idle, Tier: b.flags.Tier(),
		BaseURL:   "http://simulated.invalid/v1", // no such host can exist: nothing is sent there
		Transport: sim.NewTransport(server),
	})
	if err != nil {
		return nil, exit.Refuse("%s", configFault(err))
	}
	b.Note(event.Simulated, "the answers are simulated: nothing is sent anywhere")
	if b.flags.SimProfile == settings.ProfileSilent {
		b.Note(event.Simulated, "this provider does not say what its limit is: a few calls are refused, for that is how the run finds it")
	}
	b.noteUnused()
	if b.flags.BaseURL != "" {
		b.Note(event.Unused, "--base-url: ignored with --provider sim")
	}
	b.noteUnusedNetwork()
	return b, nil
}

// SimConfig returns the settings of the simulated provider, with the user's seed.
func (b *Account) SimConfig() (sim.Config, error) {
	cfg, err := settings.Profile(b.flags.SimProfile)
	if b.flags.Seeded {
		// A call's fate then follows from its own id, and not from which worker came first.
		cfg.Seed, cfg.TrackIDs = b.flags.Seed, true
	}
	return cfg, err
}

// OwnFiles is the number of files and sockets that the process needs besides its calls. These
// are three streams, three files, the runtime's own, name lookups, and as much again.
const OwnFiles = 32

// LowerConcurrency lowers the concurrency to what the limit on open files allows. It returns a notice about
// that; "" if nothing has changed.
func (b *Account) LowerConcurrency() string {
	limit, asked := world.OpenFiles(), b.flags.Concurrency
	if b.Books != nil {
		return ""
	}
	if b.flags.Concurrency = CallsWithin(limit, asked); b.flags.Concurrency == asked {
		return ""
	}
	return fmt.Sprintf("at most %d files may be open here, too few for --concurrency %d: lowered to %d (ulimit -n raises it)",
		limit, asked, b.flags.Concurrency)
}

// MostConcurrency returns to how many calls in flight headrace ctl may raise the run's.
func (b *Account) MostConcurrency() int {
	most := b.flags.MostConcurrency()
	if b.Books != nil {
		return most
	}
	return max(b.flags.Concurrency, CallsWithin(world.OpenFiles(), most))
}

// CallsWithin returns how many of the calls asked for may be in flight where limit files may be
// open. A limit of 0 means that it is not known.
func CallsWithin(limit uint64, asked int) int {
	if limit == 0 || uint64(asked)+OwnFiles <= limit {
		return asked
	}
	return max(1, int(limit)-OwnFiles)
}

// noteUnused adds a notice about flags of a place that do not affect the address. Another tells that
// --max-tokens has no effect.
func (b *Account) noteUnused() {
	if b.flags.MaxTokensGiven && !b.flags.DemandsBound() {
		b.Note(event.Unused, fmt.Sprintf("--max-tokens: ignored with --provider %s: give lines their own max_tokens, or all of them one by --param max_tokens=N", b.Name))
	}
	signs := b.flags.Vendor.Auth == catalog.AWS // for a region, wherever it is
	var unused []string
	for _, part := range b.flags.Placed {
		if !slices.Contains(b.flags.Vendor.Needs(), part) || b.flags.MadeOf == "" && !(signs && part == "region") {
			unused = append(unused, part)
		}
	}
	if len(unused) == 0 {
		return
	}
	reason := "--provider " + b.Name
	if b.flags.MadeOf == "" && len(b.flags.Vendor.Needs()) > 0 {
		reason = "--base-url"
	}
	b.Note(event.Unused, fmt.Sprintf("%s: ignored with %s", settings.Dashed(unused), reason))
}
