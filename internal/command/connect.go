package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/fleet"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// backend is the provider that a run calls.
type backend struct {
	fleet   *fleet.Fleet
	name    string      // of the provider: the first part of its lanes
	proof   auth.Source // what proves the caller's identity; nil: nothing does
	proven  string      // the name of the variable or file that it comes from
	told    []string    // further header values that tell accounts apart: the vendor's
	counted string      // Google's project that calls count against, where its credentials name one
	shared  bool        // all models draw on one quota

	tls       *tls.Config   // the authorities to trust and the certificate to show; nil: the usual ones
	added     []auth.Source // further secrets in headers
	addedFrom []string      // the variables and files that they come from

	books  func() sim.Books // the simulated provider's own; nil for a real one
	notice []notice         // what the user should know about it
}

// notice is something that the user should know.
type notice struct {
	code event.Code
	text string
}

func (b *backend) note(code event.Code, text string) {
	b.notice = append(b.notice, notice{code, text})
}

func (b *backend) do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	return b.fleet.Do(ctx, r)
}

// secrets returns the texts that must never be shown.
func (b *backend) secrets() []string { return b.auth().Secrets() }

// auth returns everything that proves the caller's identity. The provider's own source comes last,
// as a signature covers the rest.
func (b *backend) auth() auth.Source { return auth.Join(append(slices.Clone(b.added), b.proof)...) }

// key returns the key that is the same for days and on each machine: the provider's, or else those
// in the user's headers; "" if there is none.
func (b *backend) key() string {
	if key := staticKey(b.proof); key != "" {
		return key
	}
	var all []string
	for _, source := range b.added {
		if key := staticKey(source); key != "" {
			all = append(all, key)
		}
	}
	return strings.Join(all, "\x00")
}

// lane names the quota that a call of a model draws on. Most hosted providers count a quota
// for each model; the simulated one has a single quota for all.
func (b *backend) lane(model string) string { return laneOf(b.name, model, b.shared) }

func laneOf(provider, model string, shared bool) string {
	if shared {
		return provider + "/all-models"
	}
	return provider + "/" + model
}

// connect makes the client; no call is made.
func (r *runner) connect() (*backend, error) {
	if r.flags.provider == providerSim {
		return r.simulate()
	}
	b := &backend{name: r.flags.name(), shared: r.flags.vendor.ByAccount}
	if err := r.useNetwork(b); err != nil {
		return nil, err
	}
	if err := r.prove(b); err != nil {
		return nil, err
	}
	if r.flags.fewInFlight {
		b.note(event.LoweredConcurrency, fmt.Sprintf("some accounts of %s may have only %s in flight, so this run has no more: --concurrency N raises it",
			b.name, words.Count(r.flags.concurrency, "call")))
	}
	r.sayUnused(b)
	cfg := r.clientConfig(b)
	var err error
	if cfg.Header, err = r.headers(b); err != nil {
		return nil, err
	}
	cfg.Auth = b.auth()
	if err := r.aim(b, cfg); err != nil {
		return nil, r.addressFault(err)
	}
	return b, nil
}

// aim gives the run a client.
func (r *runner) aim(b *backend, cfg wire.Config) error {
	client, err := wire.New(cfg)
	if err != nil {
		return err
	}
	b.fleet, err = fleet.New(fleet.Lane{Name: b.name, Client: client})
	return err
}

// clientConfig says how to call a real provider. An answer keeps its room until the files
// have taken over its line: the job says so.
func (r *runner) clientConfig(b *backend) wire.Config {
	v := &r.flags.vendor
	cfg := v.Config(cmp.Or(r.flags.baseURL, v.Base))
	cfg.TLS, cfg.Text, cfg.Conns = b.tls, r.flags.writesText(), r.flags.concurrency
	cfg.MaxBodies, cfg.HoldBodies = int64(r.flags.maxBodies)*mebibyte, true
	cfg.Stream, cfg.StreamIdle = r.flags.streams()
	return cfg
}

// headers lists the further headers of every call: those of the dialect, those of the vendor's
// variables, and the user's, which beat both. Headers from variables go only to the vendor's own
// hosts.
func (r *runner) headers(b *backend) (http.Header, error) {
	all := http.Header{}
	if own, has := r.flags.dialect.(interface{ Header() http.Header }); has {
		all = own.Header()
	}
	all.Set("User-Agent", userAgent())
	if !r.isTheirs() {
		return all, r.addHeaders(b, all)
	}
	if b.counted != "" {
		all.Set(r.flags.vendor.Headers[quotaVariable], b.counted) // unless the variable names another
	}
	for variable, header := range r.flags.vendor.Headers {
		value, _ := r.env(variable)
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return nil, refuse("%s has a character that headers cannot have: check it", variable)
		}
		if r.flags.isInClear() {
			return nil, refuse("%v", r.flags.inClear("what is in "+variable))
		}
		all.Set(header, value)
	}
	if err := r.addHeaders(b, all); err != nil {
		return nil, err
	}
	for _, header := range r.flags.vendor.Headers {
		if value := all.Get(header); value != "" {
			b.told = append(b.told, header+": "+value)
		}
	}
	slices.Sort(b.told)
	return all, nil
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

// addressFault says what is wrong with the address.
func (r *runner) addressFault(err error) error {
	text, where := strings.TrimPrefix(configFault(err), "base URL: "), r.flags.toldBy()
	if !strings.Contains(r.flags.baseURL, "://") {
		scheme := "https"
		if isLoopback(hostOf("http://" + r.flags.baseURL)) {
			scheme = "http"
		}
		return refuse("%s: %s: try %s://%s", where, text, scheme, withoutKeys(r.flags.baseURL))
	}
	return refuse("%s: %s", where, text)
}

// simDefaultModel is the model of lines that name none, on the simulated provider.
const simDefaultModel = "sim-1"

// simulate serves the run in its own process, through the client that also calls real
// providers.
func (r *runner) simulate() (*backend, error) {
	cfg, err := r.simConfig()
	if err != nil {
		return nil, err
	}
	server := sim.New(cfg, r.clock)
	when, idle := r.flags.streams()
	b := &backend{name: providerSim, shared: true, books: server.Books}
	err = r.aim(b, wire.Config{
		Dialect: r.flags.dialect, Text: r.flags.writesText(), Stream: when, StreamIdle: idle,
		BaseURL:   "http://simulated.invalid/v1", // no such host can exist: nothing is sent there
		Transport: sim.NewTransport(server),
	})
	if err != nil {
		return nil, refuse("%s", configFault(err))
	}
	b.note(event.Simulated, "the answers are simulated: nothing is sent anywhere")
	if r.flags.simProfile == profileSilent {
		b.note(event.Simulated, "this provider does not say what its limit is: a few calls are refused, for that is how the run finds it")
	}
	r.sayUnused(b)
	if r.flags.baseURL != "" {
		b.note(event.Unused, "--base-url: ignored with --provider sim")
	}
	r.flags.sayUnusedNetwork(b)
	return b, nil
}

// simConfig returns the settings of the simulated provider.
func (r *runner) simConfig() (sim.Config, error) {
	cfg, err := profile(r.flags.simProfile)
	if r.flags.seeded {
		// A call's fate then follows from its own id, and not from which worker came first.
		cfg.Seed, cfg.TrackIDs = r.flags.seed, true
	}
	return cfg, err
}

func isOpenAI(base string) bool {
	host := strings.ToLower(hostOf(base))
	return base == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") // regions precede the name
}

// hostOf returns the host name in a URL; "" if there is none.
func hostOf(base string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
