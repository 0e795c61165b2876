package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jonboulle/clockwork"
)

// Option changes what Open makes.
type Option func(*options)

type options struct {
	clock     clockwork.Clock
	transport http.RoundTripper // nil: Open makes one
}

// WithClock tells time to a store; without it the real clock does.
func WithClock(clock clockwork.Clock) Option { return func(o *options) { o.clock = clock } }

// WithTransport makes the requests of a bucket; without it, one that gives up a connection on which
// nothing moves for a minute. It sets its own bounds of time. Close closes its idle connections.
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.transport = transport }
}

// Open opens a store by its address: the path of a folder, a file:// URL, or
//
//	s3://bucket/prefix?endpoint=http://host:9000&region=eu-west-1
//
// The folder need not be there; Create makes it. Its files are for their owner alone, or as
// file:///path?mode=0660 says. The endpoint of a bucket may also be told by AWS_ENDPOINT_URL_S3 or
// AWS_ENDPOINT_URL, and is Amazon's without; the region by AWS_REGION, AWS_DEFAULT_REGION or the
// file of AWS_CONFIG_FILE, and the endpoint is asked for it otherwise. Credentials come, in
// this order, from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN), the file
// of AWS_SHARED_CREDENTIALS_FILE (with AWS_PROFILE), and the machine's own role; without any,
// requests are not signed.
//
// A bucket is asked for its first name, so that what is wrong with it is found here. Whoever gets the
// store calls Close with it.
func Open(ctx context.Context, address string, opts ...Option) (Store, error) {
	o := &options{clock: clockwork.NewRealClock()}
	for _, opt := range opts {
		opt(o)
	}
	s, err := open(ctx, address, o)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", redacted(address), err)
	}
	return s, nil
}

// redacted is an address as it may be said, also if somebody wrote a secret into it.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return u.Redacted()
	}
	return address
}

func open(ctx context.Context, address string, o *options) (Store, error) {
	scheme, _, ok := strings.Cut(address, "://")
	if !ok {
		return openFolder(address, fileMode, o)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.Unwrap(err) // the address is said by who calls
	}
	if u.User != nil || u.Fragment != "" {
		return nil, errors.New("it has an @ or a # in it: write %40 or %23; credentials do not belong into an address")
	}
	switch scheme {
	case "file":
		return openFile(u, o)
	case "s3":
		return openBucket(ctx, u, o)
	}
	return nil, fmt.Errorf("%s:// is not supported: want file:// or s3://", scheme)
}

func openFile(u *url.URL, o *options) (Store, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, errors.New("a file:// URL has three slashes before its path")
	}
	if err := knows(u.Query(), "mode"); err != nil {
		return nil, err
	}
	mode := fileMode
	if said := u.Query().Get("mode"); said != "" {
		bits, err := strconv.ParseUint(said, 8, 9)
		if err != nil || bits&0o600 != 0o600 || bits&0o111 != 0 {
			return nil, fmt.Errorf("mode %s is not one of a file that its owner reads and writes, such as 0660", said)
		}
		mode = fs.FileMode(bits)
	}
	return openFolder(filepath.FromSlash(u.Path), mode, o)
}

// openFolder also takes away what was left by writers that were killed long ago.
func openFolder(path string, mode fs.FileMode, o *options) (Store, error) {
	if path == "" {
		return nil, errors.New("a store has an address: the path of a folder, or s3://bucket")
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(root); {
	case err == nil && !info.IsDir():
		return nil, errors.New("it is a file, and a store is a folder")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f := newFolder(root, mode)
	_ = f.present() // it is noted which folder it is, if it is there
	f.sweep(o.clock.Now().Add(-tempAge))
	return f, nil
}

// knows refuses what an address says that nobody reads: it would be a typing error.
func knows(query url.Values, keys ...string) error {
	for key := range query {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s= is not known: %s=", key, strings.Join(keys, "=, "))
		}
	}
	return nil
}
