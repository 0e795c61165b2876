package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
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
	// errNotResendable: its bytes are gone.
	errNotResendable = errors.New("its body cannot be sent twice")
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
	name = b.key(name)
	if err := b.create(ctx, name, body, size); err != nil {
		return fmt.Errorf("store: create %s: %w", name, err)
	}
	return nil
}

// create sends the object until an answer is final. After an error that is no fault of the body or
// the server, it finds out by the nonce whose object is there.
func (b *bucket) create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := checkRequest(ctx, name); err != nil {
		return err
	}
	if size < 0 || size > MaxObject {
		return fmt.Errorf("it would have %d bytes, and %d are the most", size, int64(MaxObject))
	}
	c, err := newResendable(ctx, body, size)
	if err != nil {
		return err
	}
	nonce := rand.Text()
	err = b.retry(ctx, func() error { return b.put(ctx, name, nonce, c) })
	if err == nil || errors.Is(err, errBody) || errors.Is(err, ErrUnsafe) {
		return err
	}
	return b.findWriter(ctx, name, nonce, err)
}

// put sends the object once.
func (b *bucket) put(ctx context.Context, name, nonce string, c *resendable) error {
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
	if errors.Is(body.err, errBody) {
		return body.err
	}
	return putError(err, c)
}

// putError turns the error of a PUT into the store's own: the name is taken, the server is unsafe, or the body is gone.
func putError(err error, c *resendable) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case ok && answer.StatusCode == http.StatusPreconditionFailed:
		return errTaken
	case ok && answer.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: this S3 knows no If-None-Match (%w)", ErrUnsafe, err)
	case c.seek == nil:
		return fmt.Errorf("%w: %w", errNotResendable, withCode(err))
	}
	return withCode(err)
}

// findWriter finds out whether this call wrote the object, after an answer that leaves it open. If it cannot find out, it
// returns an error that leaves it open, too. Even for a taken name the writer may be this call.
func (b *bucket) findWriter(ctx context.Context, name, nonce string, err error) error {
	info, statErr := b.stat(ctx, name)
	switch taken := errors.Is(err, errTaken); {
	case statErr == nil && nonceOf(info) == nonce:
		return nil
	case statErr == nil, taken && errors.Is(statErr, ErrMissing): // it was deleted since
		return ErrExists
	case taken:
		return fmt.Errorf("%w, perhaps by this very call: %w", err, statErr)
	}
	return err
}

func (b *bucket) stat(ctx context.Context, name string) (minio.ObjectInfo, error) {
	var info minio.ObjectInfo
	err := b.retry(ctx, func() (err error) {
		info, err = b.client.StatObject(ctx, b.bucket, name, minio.StatObjectOptions{})
		return storeError(err)
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
	name = b.key(name)
	err := checkRequest(ctx, name)
	if err == nil {
		err = b.retry(ctx, func() error {
			return storeError(b.client.RemoveObject(ctx, b.bucket, name, minio.RemoveObjectOptions{}))
		})
	}
	if err != nil && !errors.Is(err, ErrMissing) {
		return fmt.Errorf("store: delete %s: %w", name, err)
	}
	return nil
}

// errNoRange says that a server does not support Range.
var errNoRange = errors.New("this S3 reads no stretches of objects")

// Open implements Store. A broken stream resumes where it broke.
func (b *bucket) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return b.OpenSame(ctx, name, "", offset, length)
}

// OpenSame implements Store.
func (b *bucket) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	name = b.key(name)
	s := &stream{ctx: ctx, bucket: b, name: name, etag: identity, next: offset, end: math.MaxInt64}
	if length >= 0 && length < math.MaxInt64-offset {
		s.end = offset + length
	}
	err := checkRequest(ctx, name)
	if err == nil && offset < 0 {
		err = fmt.Errorf("from byte %d on", offset)
	}
	if err == nil {
		err = b.retry(ctx, s.request)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return s, nil
}

// Identity implements Store.
func (b *bucket) Identity(ctx context.Context, name string) (string, int64, error) {
	name = b.key(name)
	err := checkRequest(ctx, name)
	var info minio.ObjectInfo
	if err == nil {
		info, err = b.stat(ctx, name)
	}
	if err != nil {
		return "", 0, fmt.Errorf("store: identity of %s: %w", name, err)
	}
	return info.ETag, info.Size, nil
}

// stream reads a stretch of an object, in as many requests as it takes. From the first answer on
// they ask for the same object (If-Match), so the stretch never mixes two objects.
type stream struct {
	ctx       context.Context
	bucket    *bucket
	name      string
	etag      string // until the first answer sets it
	next, end int64  // the stretch still to be read; end is the object's once that is known
	body      io.ReadCloser
}

// request makes one request for the rest of the stretch.
func (s *stream) request() error {
	o, err := s.rangeOptions()
	if err != nil {
		return err
	}
	body, info, header, err := s.bucket.client.GetObject(s.ctx, s.bucket.bucket, s.name, o)
	switch answer, _ := errors.AsType[minio.ErrorResponse](err); {
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		s.end = s.next // the object ends before
		return nil
	case err != nil:
		return storeError(err)
	}
	return s.accept(body, info, header)
}

// rangeOptions returns the options of a request for the rest of the stretch. It asks for one byte if there is nothing to read, to learn
// whether the object exists.
func (s *stream) rangeOptions() (minio.GetObjectOptions, error) {
	var o minio.GetObjectOptions
	var err error
	switch {
	case s.end < math.MaxInt64:
		err = o.SetRange(s.next, max(s.next, s.end-1))
	case s.next > 0:
		err = o.SetRange(s.next, 0)
	}
	if err == nil && s.etag != "" {
		err = o.SetMatchETag(s.etag)
	}
	return o, err
}

// accept takes over an answer as the body to read. It refuses an answer with the whole object instead of the stretch.
func (s *stream) accept(body io.ReadCloser, info minio.ObjectInfo, header http.Header) error {
	if s.next > 0 && header.Get("Content-Range") == "" {
		_ = body.Close() // it is not the requested stretch
		return errNoRange
	}
	s.body, s.etag = body, info.ETag
	if info.Size >= 0 {
		s.end = min(s.end, s.next+info.Size)
	}
	return nil
}

// Read resumes the stream where it broke. Each byte received starts the count of tries anew.
func (s *stream) Read(p []byte) (n int, err error) {
	if s.next >= s.end {
		return 0, io.EOF
	}
	err = s.bucket.retry(s.ctx, func() error {
		n, err = s.read(p)
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("store: read %s at byte %d: %w", s.name, s.next, err)
	case n == 0 && s.next >= s.end:
		return 0, io.EOF
	}
	return n, nil
}

// read reads from the answer, and first makes a new request where the last one broke.
func (s *stream) read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.body == nil {
		if err := s.request(); err != nil || s.next >= s.end {
			return 0, err
		}
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.end-s.next)])
	s.next += int64(n)
	switch {
	case n > 0 || err == nil:
		return n, nil // an error that came along returns with the next read
	case errors.Is(err, io.EOF) && s.end == math.MaxInt64:
		s.end = s.next // the server does not announce an object's length
		return 0, nil
	}
	_ = s.body.Close() // it is broken
	s.body = nil
	return 0, err
}

func (s *stream) Close() error {
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}

// List implements Store. A broken list resumes behind the last name.
func (b *bucket) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		prefix := b.prefix + prefix
		l := &listing{bucket: b, prefix: prefix, after: b.key(after), yield: yield, wait: b.backoff()}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // the client's goroutines end with us
		err := checkPrefix(prefix)
		if err == nil {
			err = l.wait.retry(ctx, func() error { return l.pages(ctx) })
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Object{}, fmt.Errorf("store: list %s: %w", prefix, err))
		}
	}
}

// listing is one list under way.
type listing struct {
	bucket        *bucket
	prefix, after string
	yield         func(Object, error) bool
	wait          *backoff
}

// pages lists the names behind the last one yielded.
func (l *listing) pages(ctx context.Context) error {
	o := minio.ListObjectsOptions{Prefix: l.prefix, StartAfter: l.after, Recursive: true, FetchOwner: new(bool)}
	for info := range l.bucket.client.ListObjectsIter(ctx, l.bucket.bucket, o) {
		if info.Err != nil {
			return storeError(info.Err)
		}
		l.after = info.Key
		l.wait.tried = 0
		if err := l.visit(info); err != nil {
			return err
		}
	}
	return ctx.Err() // the client takes a canceled list for a complete one
}

// visit yields an object, unless lists leave it out. A name that no object can have is an error,
// because a list must not leave out anything else without a word.
func (l *listing) visit(info minio.ObjectInfo) error {
	if strings.HasSuffix(info.Key, "/") && info.Size == 0 {
		return nil // the mark by which other tools show a folder
	}
	for segment := range strings.SplitSeq(info.Key, "/") {
		if hidden(segment) {
			return nil
		}
	}
	if err := CheckName(info.Key); err != nil {
		return fmt.Errorf("%q: %w", info.Key, err)
	}
	if !l.yield(Object{Name: strings.TrimPrefix(info.Key, l.bucket.prefix), Size: info.Size}, nil) {
		return errStopped
	}
	return nil
}
