package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
	bucket string
	clock  clockwork.Clock
	seed   uint64 // for the chance in waits
}

// opened is the part of a bucket that an address names, and its HTTP client.
type opened struct {
	*sub
	http http.Client
}

// Close closes idle connections.
func (o *opened) Close() error {
	o.http.CloseIdleConnections()
	return nil
}

// roleTimeout bounds a request to the local address that hands out roles: without such a service
// the connection is not even refused.
const roleTimeout = 5 * time.Second

func openBucket(ctx context.Context, u *url.URL, o *options) (Store, error) {
	if err := knows(u.Query(), "endpoint", "region"); err != nil {
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
	b := &bucket{bucket: u.Host, clock: o.clock, seed: newSeed()}
	s := &opened{sub: &sub{whole: b, prefix: prefix}, http: http.Client{Transport: o.transport}}
	err := b.dial(ctx, u, o.transport)
	if err == nil {
		err = b.reachable(ctx, prefix)
	}
	if err != nil {
		_ = s.Close() // it holds only idle connections
		return nil, err
	}
	return s, nil
}

// newSeed differs from machine to machine, so that clients refused together do not come back
// together.
func newSeed() uint64 {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return binary.NativeEndian.Uint64(seed[:])
}

// reachable asks for a first name, whether or not there is one.
func (b *bucket) reachable(ctx context.Context, prefix string) error {
	for _, err := range b.List(ctx, prefix, "") {
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
		Creds: chain(), Secure: secure, Transport: transport, Region: region(u.Query()),
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
	said := cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if said == "" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(said)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, fmt.Errorf("endpoint %s is not http://host:port or https://host:port", said)
	}
	return u.Host, u.Scheme == "https", nil
}

// chain returns the sources of credentials. It renews those of a role before they end.
func chain() *credentials.Credentials {
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
