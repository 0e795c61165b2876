package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/headrace/headrace/cmd/headrace/internal/event"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// backend is whom a run calls.
type backend struct {
	client *openai.Client
	name   string           // of the provider, as its lanes begin
	key    string           // "" if there is none
	books  func() sim.Books // the simulated provider's own; nil for a real one
	notice []notice         // what the user should know of it
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
	return b.client.Do(ctx, r)
}

// lane names the quota that a call of a model draws on. Hosted quotas are counted
// for each model; the simulated provider has one for all of them.
func (b *backend) lane(model string) string {
	if b.books != nil {
		return b.name + "/all-models"
	}
	return b.name + "/" + model
}

// connect makes the client; no call is made.
func (r *runner) connect() (*backend, error) {
	if r.flags.provider == providerSim {
		return r.simulate()
	}
	b := &backend{name: providerOpenAI}
	if err := r.findKey(b); err != nil {
		return nil, err
	}
	client, err := openai.New(r.clientConfig(b.key))
	if err != nil {
		return nil, r.clientFault(err)
	}
	b.client = client
	return b, nil
}

// clientConfig says how a real provider is called. An answer has its room until its line is
// taken over: the job says so.
func (r *runner) clientConfig(key string) openai.Config {
	return openai.Config{
		APIKey: key, BaseURL: r.flags.baseURL, Conns: r.flags.concurrency,
		MaxBodies: int64(r.flags.maxBodies) * mebibyte, HoldBodies: true,
	}
}

// configFault is why a client cannot be made, in the words for people.
func configFault(err error) string {
	var e *provider.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// clientFault says whether the address is wrong or the key.
func (r *runner) clientFault(err error) error {
	text, ofURL := strings.CutPrefix(configFault(err), "base URL: ")
	switch {
	case ofURL && !strings.Contains(r.flags.baseURL, "://"):
		return refuse("--base-url: %s: try https://%s", text, withoutKeys(r.flags.baseURL))
	case ofURL:
		return refuse("--base-url: %s", text)
	}
	return refuse("%s: look at %s", text, r.flags.keyEnv)
}

// simDefaultModel is the model of lines that name none, on the simulated provider.
const simDefaultModel = "sim-1"

// simulate serves the run in its own process, through the client that a real
// provider is called by.
func (r *runner) simulate() (*backend, error) {
	cfg, err := r.simConfig()
	if err != nil {
		return nil, err
	}
	server := sim.New(cfg, r.clock)
	client, err := openai.New(openai.Config{
		BaseURL:   "http://simulated.invalid/v1", // no such host can exist: nothing is sent there
		Transport: sim.NewTransport(server),
	})
	if err != nil {
		return nil, refuse("%s", configFault(err))
	}
	b := &backend{client: client, name: providerSim, books: server.Books}
	b.note(event.Simulated, "the answers are simulated: nothing is sent anywhere")
	if r.flags.baseURL != "" {
		b.note(event.Unused, "--base-url has no meaning with --provider sim and is not used")
	}
	return b, nil
}

// simConfig says what the simulated provider is like.
func (r *runner) simConfig() (sim.Config, error) {
	cfg, err := profile(r.flags.simProfile)
	if r.flags.seeded {
		// A call's fate is then its own: it does not hang on which worker came first.
		cfg.Seed, cfg.TrackIDs = r.flags.seed, true
	}
	return cfg, err
}

// findKey takes the key from its variable. OpenAI itself needs one; other
// endpoints may not.
func (r *runner) findKey(b *backend) error {
	key, _ := r.env(r.flags.keyEnv)
	b.key = strings.TrimSpace(key)
	if b.key != "" && !r.flags.keyEnvGiven && !mayHaveOpenAIKey(r.flags.baseURL) {
		b.key = ""
		b.note(event.Key, fmt.Sprintf("the key in %s is OpenAI's and is not sent to %s: if it is that server's, say so with --api-key-env %[1]s",
			r.flags.keyEnv, hostOf(r.flags.baseURL)))
		return nil
	}
	if b.key == "" {
		if !r.flags.keyEnvGiven && !isOpenAI(r.flags.baseURL) {
			return nil
		}
		return r.failAgain(exitUsage, "%s is not set: put your key into it, name another variable with --api-key-env, or try without a key: --provider sim\nthen run:", r.flags.keyEnv)
	}
	if r.flags.configBaseURL {
		b.note(event.Key, fmt.Sprintf("the key in %s goes to %s, as %s says", r.flags.keyEnv, r.flags.baseURL, r.flags.config))
	}
	if u, err := url.Parse(r.flags.baseURL); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		b.note(event.Key, "the key travels unencrypted: "+u.Hostname()+" is not this machine, and --base-url says http")
	}
	return nil
}

func isOpenAI(base string) bool {
	host := strings.ToLower(hostOf(base))
	return base == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") // regions have a name before it
}

// mayHaveOpenAIKey reports whether a server is given OPENAI_API_KEY without being asked
// for: OpenAI's own, and one on this machine. To another provider the key says who has an
// account with OpenAI, and it could use that.
func mayHaveOpenAIKey(base string) bool { return isOpenAI(base) || isLoopback(hostOf(base)) }

// hostOf is the name in a URL; "" if there is none.
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
