package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// MaxObject bounds the bytes of an object in a bucket: the most that S3 takes in one PUT. Larger
// objects would need parts, and not every S3 completes those under a condition.
const MaxObject = 5 << 30

// nonceKey names the metadata by which a call of Create recognises its own object.
const nonceKey = "Headrace-Nonce"

// Errors after which a PUT is not repeated.
var (
	// errTaken: the name is taken, by an unknown writer so far.
	errTaken = errors.New("the name is taken")
	// errOnce: its bytes are gone.
	errOnce = errors.New("its body cannot be sent twice")
)

// Create implements Store.
//
//	PUT, If-None-Match: *, x-amz-meta-headrace-nonce: n
//	    200           it is ours
//	    412           HEAD: n ─▶ ours, an answer was lost on its way; another ─▶ ErrExists
//	    409, 5xx, …   again, with the same n
//	    given up      HEAD: n ─▶ ours; another ─▶ ErrExists; none ─▶ it is open
//
// Proxies repeat a PUT by themselves, so even a first 412 may mean our own object.
func (b *bucket) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := b.create(ctx, name, body, size); err != nil {
		return fmt.Errorf("store: create %s: %w", name, err)
	}
	return nil
}

func (b *bucket) create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := ready(ctx, name); err != nil {
		return err
	}
	if size < 0 || size > MaxObject {
		return fmt.Errorf("it would have %d bytes, and %d are the most", size, int64(MaxObject))
	}
	c, err := newContent(ctx, body, size)
	if err != nil {
		return err
	}
	nonce := rand.Text()
	err = b.retry(ctx, func() error { return b.put(ctx, name, nonce, c) })
	if err == nil || errors.Is(err, errBody) || errors.Is(err, ErrUnsafe) {
		return err
	}
	return b.whose(ctx, name, nonce, err)
}

// put sends the object once.
func (b *bucket) put(ctx context.Context, name, nonce string, c *content) error {
	body, err := c.open(ctx)
	if err != nil {
		return err
	}
	// The client never reads an empty body, so read it here.
	if _, err := body.Read(nil); err != nil {
		return err
	}
	o := minio.PutObjectOptions{
		DisableMultipart: true, UserMetadata: map[string]string{nonceKey: nonce},
		// Without TLS bodies are signed bit by bit, and even an empty one has a signed end. Versitygw
		// leaves it unread, and takes it for the next request.
		DisableContentSha256: c.size == 0,
	}
	o.SetMatchETagExcept("*")
	_, err = b.client.Client.PutObject(ctx, b.bucket, name, body, c.size, o)
	if err == nil {
		return nil
	}
	if errors.Is(body.failed, errBody) {
		return body.failed
	}
	return refused(err, c)
}

// refused returns the error for an answer, or for no answer.
func refused(err error, c *content) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case ok && answer.StatusCode == http.StatusPreconditionFailed:
		return errTaken
	case ok && answer.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: this S3 knows no If-None-Match (%w)", ErrUnsafe, err)
	case c.seek == nil:
		return fmt.Errorf("%w: %w", errOnce, coded(err))
	}
	return coded(err)
}

// whose finds the writer of an object after an answer that leaves it open. If it cannot find out, the
// error stays open, even for a taken name: the writer may be this call.
func (b *bucket) whose(ctx context.Context, name, nonce string, err error) error {
	info, looked := b.stat(ctx, name)
	switch taken := errors.Is(err, errTaken); {
	case looked == nil && nonceOf(info) == nonce:
		return nil
	case looked == nil, taken && errors.Is(looked, ErrMissing): // it was deleted since
		return ErrExists
	case taken:
		return fmt.Errorf("%w, perhaps by this very call: %w", err, looked)
	}
	return err
}

func (b *bucket) stat(ctx context.Context, name string) (minio.ObjectInfo, error) {
	var info minio.ObjectInfo
	err := b.retry(ctx, func() (err error) {
		info, err = b.client.StatObject(ctx, b.bucket, name, minio.StatObjectOptions{})
		return kind(err)
	})
	return info, err
}

// nonceOf returns the nonce, in whatever case a server writes the names of metadata.
func nonceOf(info minio.ObjectInfo) string {
	for key, value := range info.UserMetadata {
		if strings.EqualFold(key, nonceKey) {
			return value
		}
	}
	return ""
}

// Delete implements Store.
func (b *bucket) Delete(ctx context.Context, name string) error {
	err := ready(ctx, name)
	if err == nil {
		err = b.retry(ctx, func() error {
			return kind(b.client.RemoveObject(ctx, b.bucket, name, minio.RemoveObjectOptions{}))
		})
	}
	if err != nil && !errors.Is(err, ErrMissing) {
		return fmt.Errorf("store: delete %s: %w", name, err)
	}
	return nil
}
