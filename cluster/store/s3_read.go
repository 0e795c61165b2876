package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// errWhole says that a server knows no Range.
var errWhole = errors.New("this S3 reads no stretches of objects")

// Open implements Store. A stream that breaks is gone on with where it broke.
func (b *bucket) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return b.OpenSame(ctx, name, "", offset, length)
}

// OpenSame implements Identifier.
func (b *bucket) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	s := &stream{ctx: ctx, from: b, name: name, etag: identity, next: offset, end: math.MaxInt64}
	if length >= 0 && length < math.MaxInt64-offset {
		s.end = offset + length
	}
	err := ready(ctx, name)
	if err == nil && offset < 0 {
		err = fmt.Errorf("from byte %d on", offset)
	}
	if err == nil {
		err = b.retry(ctx, s.ask)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return s, nil
}

// Identity implements Identifier.
func (b *bucket) Identity(ctx context.Context, name string) (string, int64, error) {
	err := ready(ctx, name)
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
// they ask for the same object (If-Match), so nothing is put together of two.
type stream struct {
	ctx       context.Context
	from      *bucket
	name      string
	etag      string // "": that of the first answer
	next, end int64  // what is still to be read; end is the object's once that is known
	body      io.ReadCloser
}

// ask makes one request for what is still to be read.
func (s *stream) ask() error {
	o, err := s.options()
	if err != nil {
		return err
	}
	body, info, header, err := s.from.client.GetObject(s.ctx, s.from.bucket, s.name, o)
	switch answer, _ := errors.AsType[minio.ErrorResponse](err); {
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		s.end = s.next // the object ends before
		return nil
	case err != nil:
		return kind(err)
	}
	return s.take(body, info, header)
}

// options ask for the stretch. Nothing to read is asked for as one byte: whether there is such an
// object must be known.
func (s *stream) options() (minio.GetObjectOptions, error) {
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

func (s *stream) take(body io.ReadCloser, info minio.ObjectInfo, header http.Header) error {
	if s.next > 0 && header.Get("Content-Range") == "" {
		_ = body.Close() // it is not what was asked for
		return errWhole
	}
	s.body, s.etag = body, info.ETag
	if info.Size >= 0 {
		s.end = min(s.end, s.next+info.Size)
	}
	return nil
}

// Read resumes the stream where it broke. Each byte that comes begins the count of tries anew.
func (s *stream) Read(p []byte) (n int, err error) {
	if s.next >= s.end {
		return 0, io.EOF
	}
	err = s.from.retry(s.ctx, func() error {
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

// read reads from the answer, and first asks for one where the last broke.
func (s *stream) read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.body == nil {
		if err := s.ask(); err != nil || s.next >= s.end {
			return 0, err
		}
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.end-s.next)])
	s.next += int64(n)
	switch {
	case n > 0 || err == nil:
		return n, nil // an error that came along comes again
	case errors.Is(err, io.EOF) && s.end == math.MaxInt64:
		s.end = s.next // a server that does not say how long an object is
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

// List implements Store. A list that breaks is gone on with behind the last name.
func (b *bucket) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		l := &listing{from: b, prefix: prefix, after: after, yield: yield, wait: b.backoff()}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // what the client has begun ends with us
		err := checkPrefix(prefix)
		if err == nil {
			err = l.wait.retry(ctx, func() error { return l.pages(ctx) })
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(Object{}, fmt.Errorf("store: list %s: %w", prefix, err))
		}
	}
}

// listing is one list on its way.
type listing struct {
	from          *bucket
	prefix, after string
	yield         func(Object, error) bool
	wait          *backoff
}

// pages lists what is behind the last name that was yielded.
func (l *listing) pages(ctx context.Context) error {
	o := minio.ListObjectsOptions{Prefix: l.prefix, StartAfter: l.after, Recursive: true, FetchOwner: new(bool)}
	for info := range l.from.client.ListObjectsIter(ctx, l.from.bucket, o) {
		if info.Err != nil {
			return kind(info.Err)
		}
		l.after = info.Key
		l.wait.tried = 0
		if err := l.visit(info); err != nil {
			return err
		}
	}
	return ctx.Err() // the client takes a canceled list for one that is complete
}

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
	if !l.yield(Object{Name: info.Key, Size: info.Size}, nil) {
		return errEnough
	}
	return nil
}
