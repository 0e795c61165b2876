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

// Choices for the life of tokens.
const (
	// early is the divisor for the last part of a token's life: 3 s of a minute, 3 min of an
	// hour. In that part the next token is fetched while this one is still in use. A token that
	// Google's metadata servers give out again has more life left than that.
	early = 20
	// last is the divisor for the last part of its life in which it is not used any more: it might
	// end on the way.
	last = 60
	// leastLife is the shortest time for which a token is used. A token that seems to have ended
	// when it comes is a sign of a wrong clock, not of a useless token.
	leastLife = 10 * time.Second
	// mendedFor is the time after the replacement of a refused token in which another refusal
	// is final. If both are refused, the fault is not the token's. Later the refused token may
	// be one more that was withdrawn.
	mendedFor = time.Minute

	// RefreshTimeout bounds one refresh, which may outlive the call that began it.
	RefreshTimeout = 30 * time.Second
)

// A Token proves for a while who sends a request.
type Token struct {
	Value string
	// Expires is the end of its life; the zero time: it has no end.
	Expires time.Time
}

// TokensConfig says where tokens come from and where they go.
type TokensConfig struct {
	// Fetch gets a fresh token: whatever it keeps itself, a token that was given out
	// before helps nobody. It is called by a goroutine of its own, never twice at once, with
	// a context that ends after RefreshTimeout and belongs to no call. It must end then.
	//
	// An error says what has failed: a *provider.Error or a Kind counts as it is; a fault of the
	// network is recognized; any other counts as Unauthorized.
	Fetch func(ctx context.Context) (Token, error)
	// Header and Prefix say where the token goes, as in NewKey. Without a Header it is
	// sent as a bearer token.
	Header, Prefix string
	// Secrets lists further secrets that Fetch's errors may contain, and that nobody may see.
	Secrets []string
}

// Tokens is a source of tokens that expire. Each is in use until shortly before its end. A
// little earlier the next one is fetched, and no call waits for that. If no token can be used,
// calls wait for the refresh that is under way: there is one at a time.
//
// A refused token is replaced once. If the new one is refused within a minute, or there is no
// other, the refusal is final.
type Tokens struct {
	place  keyHeader
	fetch  func(context.Context) (Token, error)
	hidden []string

	mu       sync.Mutex // for what follows
	current  *usedToken // nil: there was none yet
	secrets  []string
	underway *refresh  // nil: there is none
	next     time.Time // no refresh without waiting calls begins before
}

// usedToken is a token that is, or was, in use.
type usedToken struct {
	token           string
	values          []string // of the header
	fetchedAt       time.Time
	refreshAt       time.Time // start of fetching the next one; zero: never
	unusableAt      time.Time // end of its use; zero: never
	replacesRefused bool      // it replaced one that was refused
	stale           bool      // it was refused, and must be replaced
	hopeless        bool      // it was refused, and nothing helps
}

// refresh is a refresh that is under way. Its result is there once done is closed.
type refresh struct {
	done    chan struct{}
	current *usedToken
	err     *provider.Error
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
	p, err := newKeyHeader(cfg.Header, cfg.Prefix)
	if err != nil {
		return nil, err
	}
	return &Tokens{place: p, fetch: cfg.Fetch, hidden: cfg.Secrets}, nil
}

// Apply waits for a token if none can be used. If ctx ends meanwhile, the error has the kind of
// its cause; the refresh goes on, for others.
func (t *Tokens) Apply(ctx context.Context, r *http.Request, _ []byte) error {
	current, wait := t.usable()
	if wait != nil {
		select {
		case <-wait.done:
		case <-ctx.Done():
			return contextError(ctx)
		}
		if wait.err != nil {
			e := *wait.err // each caller may add to its own
			return &e
		}
		current = wait.current
	}
	t.place.put(r, current.values)
	return nil
}

// usable returns the current token, or the refresh to wait for if there is no usable token. It begins
// a refresh early if the token ends soon.
func (t *Tokens) usable() (*usedToken, *refresh) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if current := t.current; current != nil && !current.stale && (current.unusableAt.IsZero() || now.Before(current.unusableAt)) {
		if !current.refreshAt.IsZero() && !now.Before(current.refreshAt) && !now.Before(t.next) {
			t.beginRefresh()
		}
		return current, nil
	}
	t.beginRefresh()
	return nil, t.underway
}

// beginRefresh begins a refresh unless there is one.
func (t *Tokens) beginRefresh() {
	if t.underway != nil {
		return
	}
	t.underway = &refresh{done: make(chan struct{})}
	go t.run(t.underway)
}

// run fetches a token, even if the call that needs it ends.
func (t *Tokens) run(current *refresh) {
	ctx, cancel := context.WithTimeout(context.Background(), RefreshTimeout)
	defer cancel()
	token, err := t.fetch(ctx)
	if err == nil {
		err = checkToken(token)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); err != nil {
		current.err = t.fetchError(err)
		t.next = now.Add(t.retryWait())
	} else {
		t.adopt(token, now)
		current.current = t.current
	}
	t.underway = nil
	close(current.done)
}

// checkToken refuses a token that cannot be sent. Fetch must cut off spaces and line ends around it.
func checkToken(token Token) error {
	switch {
	case token.Value == "":
		return errors.New("it is empty")
	case !isHeaderSafe(token.Value):
		return errors.New("it has a character that headers cannot have")
	}
	return nil
}

// adopt makes a fetched token the current one, and plans its refresh and its end.
func (t *Tokens) adopt(token Token, now time.Time) {
	before := t.current
	current := &usedToken{token: token.Value, values: t.place.values(token.Value), fetchedAt: now}
	if !token.Expires.IsZero() {
		life := max(leastLife, token.Expires.Sub(now))
		current.refreshAt, current.unusableAt = now.Add(life-life/early), now.Add(life-life/last)
	}
	if before != nil {
		current.replacesRefused = before.stale
		current.hopeless = before.token == current.token && (before.stale || before.hopeless)
	}
	t.current, t.secrets = current, prependSecrets(t.secrets, current.token)
}

// retryWait returns the wait after a failed refresh while a token is in use: there is time for three
// tries before its end.
func (t *Tokens) retryWait() time.Duration {
	if t.current == nil || t.current.refreshAt.IsZero() {
		return 0
	}
	return t.current.unusableAt.Sub(t.current.refreshAt) / 3
}

// Refused returns true if a fresher token than the refused one is there, or will be fetched by
// the next Apply.
func (t *Tokens) Refused(r *http.Request) bool {
	used := t.place.in(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.current
	switch {
	case current == nil || used == "":
		return false
	case used != current.token: // it was replaced since
		return !current.hopeless
	case current.replacesRefused && time.Since(current.fetchedAt) < mendedFor:
		current.hopeless = true
	case !current.hopeless:
		current.stale = true
	}
	return !current.hopeless
}

// Secrets returns the latest tokens.
func (t *Tokens) Secrets() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secrets
}

// String hides the token from %v.
func (t *Tokens) String() string { return "tokens in " + t.place.header }

// GoString hides the token from %#v.
func (t *Tokens) GoString() string { return t.String() }

// fetchError returns the error of a failed refresh, without any earlier token in its text.
func (t *Tokens) fetchError(err error) *provider.Error {
	e := provider.ClassifyErr(err).Without(t.hidden...).Without(t.secrets...)
	switch e.Kind {
	case provider.Unknown:
		e.Kind = provider.Unauthorized
	case provider.Canceled: // by Fetch itself: no call was cancelled
		e.Kind = provider.TransportFault
	}
	if e.Provider == "" {
		e.Provider = name
	}
	const what = "no fresh token: "
	if e.Message != "" {
		e.Message = what + e.Message
	}
	if e.Err != nil {
		e.Err = fmt.Errorf(what+"%w", e.Err)
	}
	return e
}

// contextError returns the error for a context that is over, by its cause.
func contextError(ctx context.Context) *provider.Error {
	cause := context.Cause(ctx)
	e := *provider.ClassifyErr(cause)
	if e.Kind == provider.Unknown {
		return &provider.Error{Kind: provider.Canceled, Provider: name, Err: cause}
	}
	return &e
}
