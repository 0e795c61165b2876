package store

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"gopkg.in/ini.v1"
)

// bucket is a Store in a bucket of S3. A name is taken by a PUT with If-None-Match: *.
type bucket struct {
	client *minio.Core
	http   http.Client
	bucket string
	prefix string // of the keys of all objects; "" or ends with a slash
	clock  clockwork.Clock
	seed   uint64 // for the chance in waits
}

// Close closes idle connections.
func (b *bucket) Close() error {
	b.http.CloseIdleConnections()
	return nil
}

// key returns the key of an object's name. It keeps "" as it is: a prefix would turn it into a valid name.
func (b *bucket) key(name string) string {
	if name == "" {
		return ""
	}
	return b.prefix + name
}

// roleTimeout bounds a request to the local address that hands out roles: without such a service
// the connection is not even refused.
const roleTimeout = 5 * time.Second

// openBucket makes a bucket's client, and asks for a first name, so that a wrong address shows at
// once.
func openBucket(ctx context.Context, u *url.URL, o *options) (Store, error) {
	if err := checkKeys(u.Query(), "endpoint", "region"); err != nil {
		return nil, err
	}
	if err := s3utils.CheckValidBucketName(u.Host); err != nil {
		return nil, err
	}
	prefix := strings.Trim(u.Path, "/")
	if err := CheckName(prefix); prefix != "" && err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	if o.transport == nil {
		o.transport = newTransport()
	}
	b := &bucket{bucket: u.Host, prefix: prefix, http: http.Client{Transport: o.transport}, clock: o.clock, seed: newSeed()}
	err := b.dial(ctx, u, o.transport)
	if err == nil {
		err = b.checkReachable(ctx)
	}
	if err != nil {
		_ = b.Close() // it holds only idle connections
		return nil, err
	}
	return b, nil
}

// newSeed returns a random seed. Each process has its own, so that clients refused together do not come back together.
func newSeed() uint64 {
	var seed [8]byte
	_, _ = crand.Read(seed[:]) // it never fails
	return binary.NativeEndian.Uint64(seed[:])
}

// checkReachable asks for a first name, whether or not there is one.
func (b *bucket) checkReachable(ctx context.Context) error {
	for _, err := range b.List(ctx, "", "") {
		return errors.Unwrap(err) // the caller's error names the address
	}
	return nil
}

// dial makes the client, and asks for the region if it is not configured.
func (b *bucket) dial(ctx context.Context, u *url.URL, transport http.RoundTripper) error {
	host, secure, err := endpoint(u.Query())
	if err != nil {
		return err
	}
	o := &minio.Options{
		Creds: credentialChain(), Secure: secure, Transport: transport, Region: region(u.Query()),
		MaxRetries: 1, // we retry ourselves: only this package knows what a second answer means
	}
	if b.client, err = minio.NewCore(host, o); err != nil || o.Region != "" {
		return err
	}
	err = b.retry(ctx, func() error {
		_, err := b.client.GetBucketLocation(ctx, b.bucket) // the client remembers it
		return err
	})
	if err != nil {
		return fmt.Errorf("its region: %w: say ?region= or AWS_REGION", err)
	}
	return nil
}

// endpoint returns the host, with its port if there is one, and whether it uses TLS.
func endpoint(query url.Values) (host string, secure bool, err error) {
	address := cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if address == "" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, fmt.Errorf("endpoint %s is not http://host:port or https://host:port", address)
	}
	return u.Host, u.Scheme == "https", nil
}

// credentialChain returns the sources of credentials. It renews those of a role before they end.
func credentialChain() *credentials.Credentials {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: roleTimeout}})
	}
	return credentials.NewChainCredentials(providers)
}

// region returns the configured region, or "".
func region(query url.Values) string {
	return cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), regionOfFile())
}

// regionOfFile reads the region from the config file of Amazon's own tools.
func regionOfFile() string {
	path := os.Getenv("AWS_CONFIG_FILE")
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".aws", "config")
	}
	file, err := ini.Load(path)
	if err != nil {
		return "" // the file is optional
	}
	section := "default"
	if profile := os.Getenv("AWS_PROFILE"); profile != "" && profile != "default" {
		section = "profile " + profile
	}
	return file.Section(section).Key("region").String()
}

const (
	// requestTries bounds the tries of a request that is lost, or that meets a busy server. With waits of
	// 0.1 s, doubled to 5 s, that lasts 6 to 12 seconds.
	requestTries = 8
	firstWait    = 100 * time.Millisecond
	longestWait  = 5 * time.Second
)

func (b *bucket) retry(ctx context.Context, request func() error) error {
	return b.backoff().retry(ctx, request)
}

// errGivenUp says that a request has used all its tries.
var errGivenUp = fmt.Errorf("%w: given up after %d tries", ErrAway, requestTries)

// backoff waits between requests, half of the time by chance: clients refused together must not come back
// together.
type backoff struct {
	clock  clockwork.Clock
	chance *rand.Rand
	tried  int
}

func (b *bucket) backoff() *backoff {
	return &backoff{clock: b.clock, chance: rand.New(rand.NewPCG(b.seed, uint64(b.clock.Now().UnixNano())))}
}

// retry makes a request until it succeeds, fails for good, or has been made requestTries times. A request
// that makes progress sets tried to 0.
func (w *backoff) retry(ctx context.Context, request func() error) error {
	for {
		err := request()
		if err == nil || !mayPass(err) || ctx.Err() != nil {
			return err
		}
		if giveUp := w.wait(ctx); giveUp != nil {
			return fmt.Errorf("%w: %w", giveUp, err)
		}
	}
}

// wait pauses before the next request. It returns an error if all tries are used, or ctx ends.
func (w *backoff) wait(ctx context.Context) error {
	if w.tried++; w.tried >= requestTries {
		return errGivenUp
	}
	most := min(firstWait<<(w.tried-1), longestWait)
	timer := w.clock.NewTimer(most/2 + time.Duration(w.chance.Int64N(int64(most/2))))
	defer timer.Stop()
	select {
	case <-timer.Chan():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finalErrors are the errors after which the same request would only fail again, or do harm.
var finalErrors = []error{
	errTaken, errBody, errNotResendable, errNoRange, errStopped, ErrUnsafe, ErrMissing, ErrChanged, ErrName, http.ErrSchemeMismatch,
}

// mayPass reports whether the same request may succeed later. A request without an answer of S3 may,
// unless the server cannot prove its identity.
func mayPass(err error) bool {
	if slices.ContainsFunc(finalErrors, func(f error) bool { return errors.Is(err, f) }) {
		return false
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answerMayPass(answer)
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return !certificate && !plain
}

// answerMayPass reports whether a request with this answer may succeed later. The code decides
// where one status stands for lasting and passing faults.
func answerMayPass(answer minio.ErrorResponse) bool {
	switch answer.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusConflict:
		// Two writers of one name at a time, of which one may go first. Other conflicts stay.
		return answer.Code == "ConditionalRequestConflict" || answer.Code == "OperationAborted" || answer.Code == "Conflict"
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	// Amazon says RequestTimeout with 400: the body came too slowly.
	return answer.StatusCode >= http.StatusInternalServerError || answer.Code == "RequestTimeout" ||
		answer.Code == "ExpiredToken"
}

// storeError turns an answer into the store's error for it, such as ErrMissing. It returns others with their code.
func storeError(err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case ok && answer.StatusCode == http.StatusNotFound && answer.Code == "NoSuchKey":
		return ErrMissing
	case ok && answer.StatusCode == http.StatusPreconditionFailed:
		return ErrChanged
	}
	return withCode(err)
}

// withCode adds the code of an S3 answer to an error, so that people can look it up.
func withCode(err error) error {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return fmt.Errorf("%w (%s)", err, answer.Code)
	}
	return err
}

const (
	// dialTimeout bounds the opening of a connection, and the TLS handshake on it.
	dialTimeout = 10 * time.Second
	// stallTimeout bounds the time without traffic before a connection is given up. A server answers
	// a PUT only when it has stored it, which takes seconds for some megabytes.
	stallTimeout = time.Minute
	// idleConnections bounds the idle connections that are kept: a worker has a few chunks in hand.
	idleConnections = 32
	idleTimeout     = 30 * time.Second
)

// newTransport returns a transport whose requests cannot hang for ever: a frozen server, or a
// network that drops everything, costs stallTimeout.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallConn{conn, stallTimeout}, nil
		},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stallTimeout,
		MaxIdleConnsPerHost:   idleConnections,
		IdleConnTimeout:       idleTimeout,
		DisableCompression:    true, // a part of an object is a part of its bytes
	}
}

// stallConn is a connection that fails if nothing moves on it. The network's deadlines only know the
// real clock.
type stallConn struct {
	net.Conn
	after time.Duration
}

func (s *stallConn) Read(p []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(s.after)); err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

func (s *stallConn) Write(p []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(s.after)); err != nil {
		return 0, err
	}
	return s.Conn.Write(p)
}
