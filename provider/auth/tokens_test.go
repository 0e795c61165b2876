package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// giver gives out tokens that live for life, in the time that takes. It counts.
type giver struct {
	life, takes time.Duration
	err         error

	mu           sync.Mutex
	given, calls int
	now, most    int // at once
	ends         map[string]time.Time
}

func (g *giver) fetch(context.Context) (auth.Token, error) {
	g.mu.Lock()
	g.calls++
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	time.Sleep(g.takes)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
	if g.err != nil {
		return auth.Token{}, g.err
	}
	g.given++
	token := auth.Token{Value: fmt.Sprintf("token-%d", g.given)}
	if g.life > 0 {
		token.Expires = time.Now().Add(g.life)
		if g.ends == nil {
			g.ends = map[string]time.Time{}
		}
		g.ends["Bearer "+token.Value] = token.Expires
	}
	return token, nil
}

// good reports whether a request's token has not ended.
func (g *giver) good(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.ends[r.Header.Get("Authorization")])
}

func newTokens(t *testing.T, fetch func(context.Context) (auth.Token, error)) *auth.Tokens {
	t.Helper()
	s := must.Get(auth.NewTokens(auth.TokensConfig{Fetch: fetch}))(t)
	return s
}

// sent is the token in a request.
func sent(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// Tokens live for a minute, a run for ten: no call has one that has ended, neither when it
// leaves nor when it comes, there are eleven refreshes at most, and never two at once.
func TestTokensOfAMinuteForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{life: time.Minute, takes: 300 * time.Millisecond}
		s := newTokens(t, g.fetch)
		began, failures, calls, slow := time.Now(), 0, 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for worker := range 64 {
			all.Go(func() {
				time.Sleep(time.Duration(worker) * 7 * time.Millisecond)
				for time.Since(began) < 10*time.Minute {
					r, asked := request(t), time.Now()
					err := s.Apply(t.Context(), r, nil)
					waited := time.Since(asked)
					time.Sleep(200 * time.Millisecond) // on the way
					mu.Lock()
					if calls++; err != nil || !g.good(r) {
						failures++
					}
					if waited > 0 && time.Since(began) > time.Second {
						slow++
					}
					mu.Unlock()
					time.Sleep(time.Duration(100+worker) * time.Millisecond)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		t.Logf("%d calls, %d failures, %d refreshes, %d at once, %d waited but at the start", calls, failures, g.calls, g.most, slow)
		if failures > 0 || g.calls > 11 || g.most != 1 || slow > 0 || calls < 64*1000 {
			t.Errorf("%d calls, %d failures, %d refreshes, %d at once, %d waited", calls, failures, g.calls, g.most, slow)
		}
	})
}

// A call that waits for another's refresh stops when its context ends. No caller's context
// stops the refresh, which serves the calls that wait on and those that come.
func TestTokensContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{takes: 10 * time.Second}
		s := newTokens(t, g.fetch)
		first, cancel := context.WithCancelCause(t.Context())
		second, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		results := make(chan error, 3)
		for _, ctx := range []context.Context{first, second, t.Context()} {
			go func() { results <- s.Apply(ctx, request(t), nil) }()
		}
		time.Sleep(time.Second)
		cancel(provider.Timeout)
		if err := <-results; !errors.Is(err, provider.Timeout) || time.Now().Nanosecond() != 0 {
			t.Errorf("%v", err)
		}
		if err := <-results; !errors.Is(err, provider.Timeout) {
			t.Errorf("%v", err)
		}
		canceled, end := context.WithCancel(t.Context())
		end()
		var e *provider.Error
		if err := s.Apply(canceled, request(t), nil); !errors.Is(err, provider.Canceled) || !errors.As(err, &e) {
			t.Errorf("%v", err)
		}
		asked := time.Now()
		if err := <-results; err != nil || time.Since(asked) != 8*time.Second {
			t.Errorf("%v after %v", err, time.Since(asked))
		}
		if sent(applied(t, s)) != "token-1" || g.calls != 1 {
			t.Errorf("%d refreshes", g.calls)
		}
	})
}

// The context of a refresh is no call's, and has an end.
func TestRefreshHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokens(t, func(ctx context.Context) (auth.Token, error) {
			<-ctx.Done()
			return auth.Token{}, ctx.Err()
		})
		began := time.Now()
		err := s.Apply(t.Context(), request(t), nil)
		if !errors.Is(err, provider.Timeout) || time.Since(began) != auth.RefreshTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A token that is refused is replaced once, for all the calls that it was sent with. If the
// one that replaces it is refused, that is final; after a minute it is another matter.
func TestTokenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{life: time.Hour, takes: time.Second}
		s := newTokens(t, g.fetch)
		first := make([]*http.Request, 64)
		for i := range first {
			first[i] = applied(t, s)
		}
		for _, r := range first[:32] {
			if !s.Refused(r) {
				t.Error("it was not replaced, and is to be")
			}
		}
		second := applied(t, s)
		for _, r := range first[32:] {
			if !s.Refused(r) {
				t.Error("it was replaced")
			}
		}
		if sent(second) != "token-2" || g.calls != 2 {
			t.Fatalf("%s of %d", sent(second), g.calls)
		}
		for _, r := range []*http.Request{second, second, first[0]} {
			if s.Refused(r) {
				t.Error("two tokens were refused")
			}
		}
		if third := applied(t, s); sent(third) != "token-2" || g.calls != 2 {
			t.Errorf("%s of %d", sent(third), g.calls)
		}
		time.Sleep(time.Hour)
		third := applied(t, s)
		if !s.Refused(third) || sent(applied(t, s)) != "token-4" {
			t.Error("another token was withdrawn")
		}
		time.Sleep(2 * time.Minute)
		if !s.Refused(applied(t, s)) {
			t.Error("and another, a while later")
		}
		if s.Refused(request(t)) {
			t.Error("a request without a token")
		}
	})
}

// A source that has no other token than the refused one makes that final.
func TestSameTokenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := newTokens(t, func(context.Context) (auth.Token, error) {
			calls++
			return auth.Token{Value: "token-0"}, nil
		})
		r := applied(t, s)
		if !s.Refused(r) {
			t.Error("there may be another one")
		}
		again := applied(t, s)
		time.Sleep(time.Hour)
		if s.Refused(again) || s.Refused(applied(t, s)) || s.Refused(r) || calls != 2 {
			t.Errorf("there is no other one; %d refreshes", calls)
		}
	})
}

// A refused token that is given out again at its end stays refused: nothing helps it.
func TestSameTokenAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokens(t, func(context.Context) (auth.Token, error) {
			return auth.Token{Value: "token-0", Expires: time.Now().Add(time.Hour)}, nil
		})
		for i, want := range []bool{true, false, false, false} {
			if got := s.Refused(applied(t, s)); got != want {
				t.Errorf("%d: %t", i, got)
			}
			time.Sleep(time.Hour)
		}
	})
}

// What is kept of an answer that was no token has no secret in it either: neither what
// Fetch knows, nor a token that was given out.
func TestBodyOfARefusalHasNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := false
		s := must.Get(auth.NewTokens(auth.TokensConfig{Secrets: []string{"refresh-token-77"}, Fetch: func(context.Context) (auth.Token, error) {
			if given {
				return auth.Token{}, &provider.Error{Kind: provider.Unauthorized, Status: 400, Body: []byte(`{"sent":"refresh-token-77","had":"access-token-1"}`)}
			}
			given = true
			return auth.Token{Value: "access-token-1"}, nil
		}}))(t)
		s.Refused(applied(t, s))
		var e *provider.Error
		if err := s.Apply(t.Context(), request(t), nil); !errors.As(err, &e) || string(e.Body) != `{"sent":"[redacted]","had":"[redacted]"}` {
			t.Errorf("%v: %s", err, e.Body)
		}
	})
}

// A refused refresh stops all calls that wait for it, with its words and without any secret; the
// next call asks again. Other faults keep their kind.
func TestRefreshFails(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind provider.Kind
		says string
	}{
		{errors.New("account disabled"), provider.Unauthorized, "auth: unauthorized: no fresh token: account disabled"},
		{errors.New("refresh-token-77 is no good"), provider.Unauthorized, "auth: unauthorized: no fresh token: [redacted] is no good"},
		{&provider.Error{Kind: provider.Unauthorized, Status: 400, Code: "invalid_grant", Message: "gone: refresh-token-77"}, provider.Unauthorized, "auth: unauthorized: 400 invalid_grant: no fresh token: gone: [redacted]"},
		{fmt.Errorf("fetch: %w", io.ErrUnexpectedEOF), provider.TransportFault, "auth: transport: no fresh token: fetch: unexpected EOF"},
		{fmt.Errorf("fetch: %w", provider.Server), provider.Server, "auth: server: no fresh token: fetch: server"},
		{context.Canceled, provider.TransportFault, "auth: transport: no fresh token: context canceled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &giver{takes: time.Second, err: tt.err}
			s := must.Get(auth.NewTokens(auth.TokensConfig{Fetch: g.fetch, Secrets: []string{"refresh-token-77"}}))(t)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					err := s.Apply(t.Context(), request(t), nil)
					var e *provider.Error
					if !errors.As(err, &e) || e.Kind != tt.kind || err.Error() != tt.says {
						t.Errorf("%v", err)
						return
					}
					e.Provider = "mine"
					for err := error(e); err != nil; err = errors.Unwrap(err) {
						if strings.Contains(err.Error(), "token-77") {
							t.Errorf("it is in %v", err)
						}
					}
				})
			}
			all.Wait()
			if g.calls != 1 {
				t.Errorf("%d refreshes for those who waited", g.calls)
			}
			g.err = nil
			if applied(t, s); g.calls != 2 {
				t.Errorf("%d refreshes", g.calls)
			}
		})
	}
}

// A refresh that fails while the token is still good is nobody's failure. It is tried again
// a few times, not with each call.
func TestRefreshFailsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{life: time.Hour}
		s := newTokens(t, g.fetch)
		applied(t, s)
		g.err = provider.Server
		for range 59*60 - 1 {
			time.Sleep(time.Second)
			applied(t, s)
		}
		synctest.Wait()
		if g.calls != 1+3 {
			t.Errorf("%d refreshes", g.calls)
		}
		time.Sleep(time.Second)
		if err := s.Apply(t.Context(), request(t), nil); !errors.Is(err, provider.Server) {
			t.Errorf("%v", err)
		}
	})
}

// What a source may give that is no good: nothing, what no header may have, and a token that
// has ended by a clock that is wrong, which is used all the same.
func TestOddTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, value := range []string{"", "secret\nX-Evil: 1", "secret-é"} {
			s := newTokens(t, func(context.Context) (auth.Token, error) { return auth.Token{Value: value}, nil })
			if err := s.Apply(t.Context(), request(t), nil); !errors.Is(err, provider.Unauthorized) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", value, err)
			}
		}
		g := &giver{life: -time.Minute}
		g.ends = map[string]time.Time{}
		calls := 0
		s := newTokens(t, func(context.Context) (auth.Token, error) {
			calls++
			return auth.Token{Value: "token-1", Expires: time.Now().Add(-time.Minute)}, nil
		})
		for range 60 {
			applied(t, s)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if calls > 7 {
			t.Errorf("%d refreshes in a minute", calls)
		}
	})
}

// Where tokens go, and what is no source.
func TestTokensConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{}
		s := must.Get(auth.NewTokens(auth.TokensConfig{Fetch: g.fetch, Header: "api-key"}))(t)
		if got := applied(t, s).Header; got.Get("Api-Key") != "token-1" || len(got) != 1 {
			t.Errorf("%v", got)
		}
		for _, cfg := range []auth.TokensConfig{{}, {Fetch: g.fetch, Header: "a b"}, {Fetch: g.fetch, Header: "a", Prefix: "\n"}} {
			if _, err := auth.NewTokens(cfg); !errors.Is(err, provider.Misconfigured) {
				t.Errorf("%v", err)
			}
		}
	})
}

// The latest few tokens are secrets, and are hidden.
func TestSecretsOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giver{life: time.Minute}
		s := newTokens(t, g.fetch)
		for range 6 {
			applied(t, s)
			time.Sleep(time.Minute)
		}
		if got := s.Secrets(); !slices.Equal(got, []string{"token-6", "token-5", "token-4", "token-3"}) {
			t.Errorf("%q", got)
		}
		if shown := fmt.Sprintf("%v %+v %#v", s, s, s); strings.Contains(shown, "token-") {
			t.Errorf("%s", shown)
		}
	})
}
