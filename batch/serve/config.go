package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Defaults of Config.
const (
	// DefaultMaxBody holds any chat with its pictures.
	DefaultMaxBody = 32 << 20
	// DefaultMaxBodies holds ten thousand chats of 25 KiB that wait.
	DefaultMaxBodies = 256 << 20
	// DefaultMaxWaiting is as many: an hour's calls at 166 a minute.
	DefaultMaxWaiting = 10_000
	// DefaultMaxWait is less than the 5 minutes after which Node's fetch gives up a request without
	// headers, whatever the SDK's timeout.
	DefaultMaxWait = 4 * time.Minute
	// DefaultCommitAfter is well under the 60 s of silence after which common load balancers cut a
	// connection, and long enough that most refusals still have their true status.
	DefaultCommitAfter = 15 * time.Second
	// DefaultStreamIdle is longer than the pause of any model that thinks.
	DefaultStreamIdle = 5 * time.Minute
	// DefaultTimeout is that of the official SDKs.
	DefaultTimeout = 10 * time.Minute
)

// An Upstream sends calls to one provider. A *wire.Client is one.
type Upstream interface {
	// Pass sends a request with the provider's key, once; see wire.Client.Pass.
	Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error)
	// List asks for the list of models.
	List(ctx context.Context, header http.Header) (*http.Response, error)
}

// Home is the part of a sticky pool in which requests wait that have something in common, such as the beginning of their
// prompts: the lane whose server may have that in its cache goes first. See [batch.HomeOf].
type Home struct {
	Pool     string         // for Config.Lanes, which names its first lane only; "": the request has no home
	Options  []batch.Option // of its call, as Config.Pool returns them
	Patience time.Duration  // a request that would wait there for longer waits in its sticky pool, whose lanes take turns
}

// Config says whom to serve, and how. Shared and Upstream are needed, and Clients or Open.
type Config struct {
	// Shared is the line, with its lanes and limits. Its Close belongs to the caller, after that of
	// the server.
	Shared *batch.Shared
	// Upstream returns the way to the provider of a lane; nil: the lane has none.
	Upstream func(lane string) Upstream
	// Pool names the pool in which a request waits, and further options of its call. Its error says
	// that the model is not served: the client sees its text. nil: each model is a lane of its own name.
	Pool func(operation, model string) (pool string, opts []batch.Option, err error)
	// Lanes names the lanes of a pool, whose pace is the pool's; nil: the pool is the one lane of its name.
	Lanes func(pool string) []string
	// Home returns where a request of a sticky pool waits first, by its body; the zero Home: it has no home. nil: no pool is
	// sticky.
	Home func(pool string, body []byte) Home
	// Models names the lane whose provider lists the models; "": nobody is asked, and GET /v1/models is
	// not served.
	Models string

	Clients     []door.Client
	Open        bool     // requests without a token may come in, and see the status if there are no Clients
	Hosts       []string // names by which clients may call, besides those of this machine
	AllowOrigin []string // pages in a browser that may call

	// Ahead is the time whose calls ask for leave together, where that comes from another machine; 0: one at a time
	// asks, and requests of all clients keep their order until then.
	Ahead time.Duration

	MaxBody     int64         // of one request, in bytes
	MaxBodies   int64         // of all requests together, in bytes
	MaxWaiting  int           // requests that wait; one client may have half of them
	MaxWait     time.Duration // until a call leaves, for requests that say nothing else
	CommitAfter time.Duration // a stream that waits longer gets its head, and pings
	StreamIdle  time.Duration // the longest silence of a stream; below 0: no bound
	Timeout     time.Duration // of a call from its departure to its end; below 0: no bound
	FinishGone  bool          // a call whose client has gone goes on to its end
	InjectUsage bool          // streams of OpenAI's chats are asked for their usage, which a client that has not asked for it does not see

	// MaxCost bounds what all calls cost together, since the server began; 0: nothing does. A client's own caps are
	// in its entry. A cap needs Price.
	MaxCost limiter.Money
	// Price returns what a call of so many tokens costs in a pool, at most; false: nobody knows. Under a cap such a
	// call is refused.
	Price func(pool, model string, input, output float64) (limiter.Money, bool)
	// Cost returns what an answered call has cost on a lane; false, or nil: it is booked at its price.
	Cost func(lane, model string, used provider.Usage) (limiter.Money, bool)

	Log   func(Access) // one value for each request that had a client; nil: nobody listens
	Clock clockwork.Clock
}

// withDefaults fills in the fields whose zero value stands for another one.
func (c Config) withDefaults() Config {
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.MaxBodies = max(cmp.Or(c.MaxBodies, DefaultMaxBodies), c.MaxBody)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultMaxWait)
	c.CommitAfter = cmp.Or(c.CommitAfter, DefaultCommitAfter)
	c.StreamIdle = bounded(cmp.Or(c.StreamIdle, DefaultStreamIdle))
	c.Timeout = bounded(cmp.Or(c.Timeout, DefaultTimeout))
	if c.Pool == nil {
		c.Pool = func(_, model string) (string, []batch.Option, error) { return model, nil, nil }
	}
	if c.Lanes == nil {
		c.Lanes = func(pool string) []string { return []string{pool} }
	}
	if c.Clock == nil {
		c.Clock = clockwork.NewRealClock()
	}
	return c
}

// bounded returns a bound, and a hundred years for none: any timer takes that.
func bounded(d time.Duration) time.Duration {
	if d < 0 {
		d = 100 * 365 * 24 * time.Hour
	}
	return d
}

// check returns what is wrong with the configuration; nil if nothing is.
func (c Config) check() error {
	var faults []error
	if c.Shared == nil || c.Upstream == nil {
		faults = append(faults, errors.New("both Shared and Upstream are needed"))
	}
	for name, n := range map[string]int64{
		"MaxBody": c.MaxBody, "MaxBodies": c.MaxBodies, "MaxWaiting": int64(c.MaxWaiting), "MaxWait": int64(c.MaxWait),
		"CommitAfter": int64(c.CommitAfter), "Ahead": int64(c.Ahead),
	} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s is %d: want 0 or more", name, n))
		}
	}
	if c.Price == nil && (c.MaxCost > 0 || slices.ContainsFunc(c.Clients, func(k door.Client) bool { return k.MaxCostDay+k.MaxCostRun > 0 })) {
		faults = append(faults, errors.New("a cap on costs needs Price"))
	}
	if c.MaxCost < 0 {
		faults = append(faults, fmt.Errorf("MaxCost is %v: want 0 or more", c.MaxCost))
	}
	return errors.Join(faults...)
}

// Access describes a request that has ended. It has nothing of its body.
type Access struct {
	At       time.Time // when it came
	Client   string
	Class    door.Class
	Path     string
	Model    string
	Lane     string // of its last call; "": it had none
	Status   int    // that the client got; 0: it had gone before
	Code     string // of a refusal of this server's
	Streamed bool
	Waited   time.Duration // until its last call left, or the end
	Took     time.Duration // in all
	First    time.Duration // until the first byte of the answer was here, pings aside; 0: there was no answer
	Attempts int
	Bytes    int64 // of the answer
	Usage    provider.Usage
	Cost     limiter.Money // of its calls
	Priced   bool          // Cost is known; otherwise it is an estimate, or zero
	Finish   string
	Gone     bool // the client went away before the end
}
