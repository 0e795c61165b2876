package servers

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// GCRA is the limiter of throttled, which paces each call. Its X-RateLimit-Limit is the
// burst, not the rate.
func GCRA(perSecond, burst int, latency time.Duration) Start {
	return func(ctx context.Context, dir string) (*Peer, error) {
		store, err := memstore.NewCtx(1) // the one key of a limiter that does not vary
		if err != nil {
			return nil, err
		}
		quota := throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst}
		gcra, err := throttled.NewGCRARateLimiterCtx(store, quota)
		if err != nil {
			return nil, err
		}
		law := throttled.HTTPRateLimiterCtx{RateLimiter: gcra}
		return inProcess(func() http.Handler { return law.RateLimit(backend(latency)) })(ctx, dir)
	}
}

// Throttle is chi's cap on calls in flight: a 429 at once, and no header.
func Throttle(most int, latency time.Duration) Start {
	return inProcess(func() http.Handler { return middleware.Throttle(most)(backend(latency)) })
}

// SlidingWindow is httprate's: it counts this window's calls, and the part of the last
// window's that still lies within one window's length.
func SlidingWindow(calls int, window, latency time.Duration) Start {
	oneKey := func(*http.Request) (string, error) { return "", nil }
	return inProcess(func() http.Handler { return httprate.LimitBy(calls, window, oneKey)(backend(latency)) })
}

// FixedWindow is ulule/limiter's, whose window begins with the first call.
func FixedWindow(calls int64, window, latency time.Duration) Start {
	return inProcess(func() http.Handler {
		law := limiter.New(memory.NewStore(), limiter.Rate{Period: window, Limit: calls})
		return stdlib.NewMiddleware(law).Handler(backend(latency))
	})
}
