package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/minio/minio-go/v7"
)

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

// errTired says that a request has used all its tries.
var errTired = fmt.Errorf("%w: given up after %d tries", ErrAway, requestTries)

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
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		if over := w.next(ctx); over != nil {
			return fmt.Errorf("%w: %w", over, err)
		}
	}
}

// next waits, or returns an error if there is no next request.
func (w *backoff) next(ctx context.Context) error {
	if w.tried++; w.tried >= requestTries {
		return errTired
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

// finals are the errors after which the same request would only fail again, or do harm.
var finals = []error{
	errTaken, errBody, errOnce, errWhole, errEnough, ErrUnsafe, ErrMissing, ErrChanged, ErrName, http.ErrSchemeMismatch,
}

// passing reports whether the same request may succeed later. A request without an answer of S3 may,
// unless the server cannot prove its identity.
func passing(err error) bool {
	if slices.ContainsFunc(finals, func(f error) bool { return errors.Is(err, f) }) {
		return false
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return passingAnswer(answer)
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return !certificate && !plain
}

func passingAnswer(answer minio.ErrorResponse) bool {
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

// kind turns an answer into a store's error, if it has one.
func kind(err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case ok && answer.StatusCode == http.StatusNotFound && answer.Code == "NoSuchKey":
		return ErrMissing
	case ok && answer.StatusCode == http.StatusPreconditionFailed:
		return ErrChanged
	}
	return coded(err)
}

// coded adds the code of an answer, by which others know it.
func coded(err error) error {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return fmt.Errorf("%w (%s)", err, answer.Code)
	}
	return err
}
