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

// errWhole says that a server does not support Range.
var errWhole = errors.New("this S3 reads no stretches of objects")

// Open implements Store. A broken stream resumes where it broke.
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
// they ask for the same object (If-Match), so the stretch never mixes two objects.
type stream struct {
	ctx       context.Context
	from      *bucket
	name      string
	etag      string // until the first answer sets it
	next, end int64  // the stretch still to be read; end is the object's once that is known
	body      io.ReadCloser
}

// ask makes one request for the rest of the stretch.
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

// options asks for the stretch. It asks for one byte if there is nothing to read, to learn
// whether the object exists.
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
		_ = body.Close() // it is not the requested stretch
		return errWhole
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

// read reads from the answer, and first makes a new request where the last one broke.
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
		l := &listing{from: b, prefix: prefix, after: after, yield: yield, wait: b.backoff()}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // the client's goroutines end with us
		err := checkPrefix(prefix)
		if err == nil {
			err = l.wait.retry(ctx, func() error { return l.pages(ctx) })
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(Object{}, fmt.Errorf("store: list %s: %w", prefix, err))
		}
	}
}

// listing is one list under way.
type listing struct {
	from          *bucket
	prefix, after string
	yield         func(Object, error) bool
	wait          *backoff
}

// pages lists the names behind the last one yielded.
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
	return ctx.Err() // the client takes a canceled list for a complete one
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
