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

// WithClock sets the clock of a store; the default is the real one.
func WithClock(clock clockwork.Clock) Option { return func(o *options) { o.clock = clock } }

// WithTransport sets the transport for a bucket's requests. The default one gives up a connection on
// which nothing moves for a minute. Another one sets its own bounds of time. Close closes its idle
// connections.
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.transport = transport }
}

// Open opens a store by its address: the path of a folder, a file:// URL, or
//
//	s3://bucket/prefix?endpoint=http://host:9000&region=eu-west-1
//
// The folder need not be there; Create makes it. Its files are for their owner alone, or as
// file:///path?mode=0660 says. AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL may also name a bucket's
// endpoint; the default is Amazon's. The region comes from AWS_REGION, AWS_DEFAULT_REGION or the file
// of AWS_CONFIG_FILE, and else from the endpoint. Credentials come, in this order, from
// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN), from the file of
// AWS_SHARED_CREDENTIALS_FILE (with AWS_PROFILE), and from the machine's own role. Without any,
// requests are not signed.
//
// Open asks a bucket for its first name, to find faults early. The caller closes the store by calling
// Close with it.
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

// redacted returns an address that may be shown, even if its user wrote a secret into it.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return u.Redacted()
	}
	return address
}

// open opens a store by its address. An address without a scheme is the path of a folder.
func open(ctx context.Context, address string, o *options) (Store, error) {
	scheme, _, ok := strings.Cut(address, "://")
	if !ok {
		return openFolder(address, fileMode, o)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller's error names the address
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

// openFile opens the folder of a file:// URL. It refuses a mode that keeps the owner out, or that
// makes files executable.
func openFile(u *url.URL, o *options) (Store, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, errors.New("a file:// URL has three slashes before its path")
	}
	if err := checkKeys(u.Query(), "mode"); err != nil {
		return nil, err
	}
	mode := fileMode
	if modeText := u.Query().Get("mode"); modeText != "" {
		bits, err := strconv.ParseUint(modeText, 8, 9)
		if err != nil || bits&0o600 != 0o600 || bits&0o111 != 0 {
			return nil, fmt.Errorf("mode %s is not one of a file that its owner reads and writes, such as 0660", modeText)
		}
		mode = fs.FileMode(bits)
	}
	return openFolder(filepath.FromSlash(u.Path), mode, o)
}

// openFolder opens a folder as a store. It deletes files left by writers that were killed long ago.
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
	_ = f.checkPresent() // note which folder it is, if it is there
	f.sweep(o.clock.Now().Add(-tempAge))
	return f, nil
}

// checkKeys returns an error for a key in an address that nothing reads: it must be a typing error.
func checkKeys(query url.Values, keys ...string) error {
	for key := range query {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s= is not known: %s=", key, strings.Join(keys, "=, "))
		}
	}
	return nil
}
