package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// gate gives out tokens, in the time that takes, and is the provider that asks for them: it
// answers after a second to whom has a token that has not ended and was not withdrawn.
type gate struct {
	life, takes time.Duration
	err         error // of a refresh

	mu      sync.Mutex
	given   int
	now     int // refreshes under way
	most    int // of them at once
	ends    map[string]time.Time
	refused int
	barred  string // the token that was withdrawn
}

func (g *gate) fetch(context.Context) (auth.Token, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	time.Sleep(g.takes)
	g.mu.Lock()
	g.now--
	g.given++
	token := auth.Token{Value: fmt.Sprintf("token-%d", g.given), Expires: time.Now().Add(g.life)}
	if g.ends == nil {
		g.ends = map[string]time.Time{}
	}
	g.ends[token.Value] = token.Expires
	return token, g.err
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	time.Sleep(time.Second)
	g.mu.Lock()
	defer g.mu.Unlock()
	good := token != g.barred && time.Now().Add(-time.Second).Before(g.ends[token]) // when it came
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	text := `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`
	if !good {
		g.refused++
		resp.StatusCode, text = 401, `{"error":{"message":"the token has ended","code":"invalid_api_key"}}`
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
	return resp, nil
}

// items are as many as take so long, ten at once, a second each.
func items(d time.Duration) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range int(10 * d / time.Second) {
			if !yield(i) {
				return
			}
		}
	}
}

// run runs that long; at is called for each item.
func (g *gate) run(t *testing.T, d time.Duration, at func(i int)) (answered int, err error) {
	t.Helper()
	tokens := must.Get(auth.NewTokens(auth.TokensConfig{Fetch: g.fetch}))(t)
	client := must.Get(wire.New(wire.Config{Dialect: openai.Dialect{}, BaseURL: "http://gate/v1", Auth: tokens, Transport: g}))(t)
	ask := func(ctx context.Context, i int) (provider.Reply, error) {
		at(i)
		return client.Do(ctx, provider.Request{Endpoint: provider.Chat, Model: "m", Body: []byte(`{"model":"m"}`)})
	}
	out, err := batch.Run(t.Context(), items(d), ask, batch.WithConcurrency(10))
	for _, o := range out {
		if o.Err == nil {
			answered++
		}
	}
	return answered, err
}

// A run of ten minutes with tokens of a minute has no failure, and eleven refreshes at most.
func TestRunOutlivesTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := &gate{life: time.Minute, takes: 300 * time.Millisecond}, time.Now()
		answered, err := g.run(t, 10*time.Minute, func(int) {})
		t.Logf("%d answers in %v, %d refused, %d refreshes, %d at once", answered, time.Since(began), g.refused, g.given, g.most)
		if err != nil || answered != 6000 || g.refused != 0 || g.given > 11 || g.most != 1 || time.Since(began) < 10*time.Minute {
			t.Errorf("%v: %d answers in %v, %d refused, %d refreshes, %d at once", err, answered, time.Since(began), g.refused, g.given, g.most)
		}
	})
}

// A token that is withdrawn amid a run costs those in flight another try, and one refresh.
func TestRunOutlivesWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{life: time.Hour, takes: 300 * time.Millisecond}
		answered, err := g.run(t, time.Minute, func(i int) {
			if i == 300 {
				g.mu.Lock()
				g.barred = "token-1"
				g.mu.Unlock()
			}
		})
		if err != nil || answered != 600 || g.refused > 20 || g.given != 2 {
			t.Errorf("%v: %d answers, %d refused, %d refreshes", err, answered, g.refused, g.given)
		}
	})
}

// A refresh that is refused stops the run, with its words.
func TestRunEndsWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{life: time.Minute}
		answered, err := g.run(t, 10*time.Minute, func(i int) {
			if i == 300 {
				g.mu.Lock()
				g.err = errors.New("the account is disabled")
				g.mu.Unlock()
			}
		})
		if !errors.Is(err, provider.Unauthorized) || !strings.Contains(err.Error(), "the account is disabled") || answered < 500 || answered > 700 || g.refused > 0 {
			t.Errorf("%v: %d answers, %d refused", err, answered, g.refused)
		}
	})
}
