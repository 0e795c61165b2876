package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/headrace/headrace/provider"
)

// Numbers of tokens that are choices.
const (
	// early is the last part of a token's life in which the next one is got while it is still
	// in use: 3 s of a minute, 3 min of an hour. That is less than Google's servers of
	// metadata keep a token that they give out again.
	early = 20
	// last is the last part of its life in which it is used no more: on the way it might end.
	last = 60
	// leastLife is how long a token is used at least. One that seems to have ended when it
	// comes tells of a clock that is wrong, not of a token that is useless.
	leastLife = 10 * time.Second
	// mendedFor is for how long after a token has replaced one that was refused it may not be
	// refused itself: what is refused twice is not the token. Later it may be one more that
	// was withdrawn.
	mendedFor = time.Minute

	// RefreshTimeout bounds one refresh. It may outlive the call that began it by that.
	RefreshTimeout = 30 * time.Second
)

// A Token proves for a while who sends a request.
type Token struct {
	Value string
	// Expires is when it ends; the zero time: it has no end.
	Expires time.Time
}

// TokensConfig says where tokens come from and go to.
type TokensConfig struct {
	// Fetch gets a token that is fresh: whatever it keeps itself, a token that was given out
	// before helps nobody. It is called by a goroutine of its own, never twice at once, with
	// a context that ends after RefreshTimeout and belongs to no call. It must end then.
	//
	// An error says what has failed: a *provider.Error or a Kind by itself; a fault of the
	// network is recognized; any other counts as Unauthorized.
	Fetch func(ctx context.Context) (Token, error)
	// Header and Prefix are where the token goes, as NewKey has them. Without a Header it is
	// sent as a bearer token.
	Header, Prefix string
	// Secrets are what else Fetch's errors may have in them, and nobody may see.
	Secrets []string
}

// Tokens is a source of tokens that end. Each is in use until shortly before its end; a
// little before that the next one is got, for which nobody waits. Where there is none to be
// used, calls wait for the refresh that is under way: there is one at a time.
//
// A token that is refused is replaced once. If what replaces it is refused within a minute,
// or there is no other, that is final.
type Tokens struct {
	place  place
	fetch  func(context.Context) (Token, error)
	hidden []string

	mu       sync.Mutex // for what follows
	held     *held      // nil: there was none yet
	secrets  []string
	underway *refresh  // nil: there is none
	next     time.Time // no refresh for which nobody waits begins before
}

// held is a token that is, or was, in use.
type held struct {
	token  string
	values []string // of the header
	came   time.Time
	soon   time.Time // from when on the next one is got; zero: never
	end    time.Time // from when on it is not used; zero: never
	mends  bool      // it replaced one that was refused
	stale  bool      // it was refused, and is to be replaced
	final  bool      // it was refused, and nothing helps
}

// refresh is one that is under way. What it came to is there when it is done.
type refresh struct {
	done chan struct{}
	held *held
	err  *provider.Error
}

// NewTokens makes a source. Nothing is fetched before the first call needs it. An error is of
// kind Misconfigured.
func NewTokens(cfg TokensConfig) (*Tokens, error) {
	if cfg.Fetch == nil {
		return nil, misconfigured("tokens: nothing fetches any")
	}
	if cfg.Header == "" {
		cfg.Header, cfg.Prefix = Authorization, BearerPrefix
	}
	p, err := newPlace(cfg.Header, cfg.Prefix)
	if err != nil {
		return nil, err
	}
	return &Tokens{place: p, fetch: cfg.Fetch, hidden: cfg.Secrets}, nil
}

// Apply waits for a token if there is none to be used. If ctx ends meanwhile, the error is
// as its cause says; the refresh goes on, for others.
func (t *Tokens) Apply(ctx context.Context, r *http.Request, _ []byte) error {
	h, wait := t.now()
	if wait != nil {
		select {
		case <-wait.done:
		case <-ctx.Done():
			return ended(ctx)
		}
		if wait.err != nil {
			e := *wait.err // each caller may add to its own
			return &e
		}
		h = wait.held
	}
	t.place.put(r, h.values)
	return nil
}

// now is the token that can be used now, or the refresh that is to be waited for.
func (t *Tokens) now() (*held, *refresh) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if h := t.held; h != nil && !h.stale && (h.end.IsZero() || now.Before(h.end)) {
		if !h.soon.IsZero() && !now.Before(h.soon) && !now.Before(t.next) {
			t.begin()
		}
		return h, nil
	}
	t.begin()
	return nil, t.underway
}

// begin begins a refresh unless there is one.
func (t *Tokens) begin() {
	if t.underway != nil {
		return
	}
	t.underway = &refresh{done: make(chan struct{})}
	go t.run(t.underway)
}

// run gets a token, whatever becomes of the call that needs it.
func (t *Tokens) run(r *refresh) {
	ctx, cancel := context.WithTimeout(context.Background(), RefreshTimeout)
	defer cancel()
	token, err := t.fetch(ctx)
	if err == nil {
		err = check(token)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); err != nil {
		r.err = t.failure(err)
		t.next = now.Add(t.pause())
	} else {
		t.take(token, now)
		r.held = t.held
	}
	t.underway = nil
	close(r.done)
}

// check refuses what cannot be sent. Spaces and line ends around a token are Fetch's to cut.
func check(token Token) error {
	switch {
	case token.Value == "":
		return errors.New("it is empty")
	case !fits(token.Value):
		return errors.New("it has a character that headers cannot have")
	}
	return nil
}

// take takes a token up.
func (t *Tokens) take(token Token, now time.Time) {
	before := t.held
	h := &held{token: token.Value, values: t.place.values(token.Value), came: now}
	if !token.Expires.IsZero() {
		life := max(leastLife, token.Expires.Sub(now))
		h.soon, h.end = now.Add(life-life/early), now.Add(life-life/last)
	}
	if before != nil {
		h.mends = before.stale
		h.final = before.token == h.token && (before.stale || before.final)
	}
	t.held, t.secrets = h, remember(t.secrets, h.token)
}

// pause is how long nobody tries again to get the next token while one is in use: three
// tries before its end.
func (t *Tokens) pause() time.Duration {
	if t.held == nil || t.held.soon.IsZero() {
		return 0
	}
	return t.held.end.Sub(t.held.soon) / 3
}

// Refused is true if a fresher token than the refused one is there, or will be asked for by
// the next Apply.
func (t *Tokens) Refused(r *http.Request) bool {
	used := t.place.in(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held
	switch {
	case h == nil || used == "":
		return false
	case used != h.token: // it was replaced since
		return !h.final
	case h.mends && time.Since(h.came) < mendedFor:
		h.final = true
	case !h.final:
		h.stale = true
	}
	return !h.final
}

// Secrets are the latest tokens.
func (t *Tokens) Secrets() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secrets
}

// String hides the token from %v.
func (t *Tokens) String() string { return "tokens in " + t.place.header }

// GoString hides the token from %#v.
func (t *Tokens) GoString() string { return t.String() }

// failure says why there is no fresh token, without any that there was.
func (t *Tokens) failure(err error) *provider.Error {
	e := *provider.ClassifyErr(err)
	switch e.Kind {
	case provider.Unknown:
		e.Kind = provider.Unauthorized
	case provider.Canceled: // by whoever fetches; no call was
		e.Kind = provider.TransportFault
	}
	if e.Provider == "" {
		e.Provider = name
	}
	for _, text := range []*string{&e.Message, &e.Code, &e.Type, &e.Param, &e.RequestID} {
		*text = t.quiet(*text)
	}
	e.Body = provider.Redact(provider.Redact(e.Body, t.hidden...), t.secrets...)
	const what = "no fresh token: "
	if e.Message != "" {
		e.Message = what + e.Message
	}
	if e.Err != nil {
		if text := e.Err.Error(); t.quiet(text) == text {
			e.Err = fmt.Errorf(what+"%w", e.Err)
		} else {
			e.Err = errors.New(what + t.quiet(text))
		}
	}
	return &e
}

func (t *Tokens) quiet(s string) string {
	return provider.RedactText(provider.RedactText(s, t.hidden...), t.secrets...)
}

// ended says why a context is over, by its cause.
func ended(ctx context.Context) *provider.Error {
	cause := context.Cause(ctx)
	e := *provider.ClassifyErr(cause)
	if e.Kind == provider.Unknown {
		return &provider.Error{Kind: provider.Canceled, Provider: name, Err: cause}
	}
	return &e
}
