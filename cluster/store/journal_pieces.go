package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jonboulle/clockwork"
)

const (
	// pieceBytes is the size at which a piece is written. Another piece gathers while one is being
	// written, so two are in memory, and one line more each.
	pieceBytes = 4 << 20
	// pieceRetryWait is the pause before a failed piece is written again.
	pieceRetryWait = time.Second
)

// Why a journal ends.
var (
	errOtherWriter = fmt.Errorf("another process writes it: %w", ErrExists)
	errFull        = fmt.Errorf("it has %d pieces, which are the most", MaxPieces)
	errClosed      = errors.New("it is closed")
)

// pieceName returns the name of the n-th piece; piece 0 has no lines, and marks the journal's presence.
func pieceName(name string, n int) string { return fmt.Sprintf("%s.%0*d", name, numberDigits, n) }

// pieces is a journal in pieces. One goroutine owns the gathering piece; at most one other writes a piece.
//
//	Write ─▶ gathering ─ full, old or flushed ─▶ cut ─▶ Create name.00000n ─▶ written
//	                                              ▲            │ failed
//	                                              └────────────┘ the same bytes again
type pieces struct {
	name    string
	lines   chan []byte
	flushes chan flush
	cancel  context.CancelFunc
	over    chan struct{}
	failed  error // why it is over; read only after over is closed
}

// flush waits until all lines that had come before it are written.
type flush struct {
	lines int
	done  chan error // capacity 1
}

// newPieces returns a journal whose piece 0 is there already. It starts the goroutine that owns
// the gathered lines, which runs until Close or an error that ends the journal.
func newPieces(ctx context.Context, s Store, name string, cfg JournalConfig) *pieces {
	cfg.Every = cmp.Or(cfg.Every, DefaultPieceEvery)
	cfg.Lines = cmp.Or(cfg.Lines, DefaultPieceLines)
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	// The journal lives until Close, and not only until the end of the call that began it.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j := &pieces{
		name: name, lines: make(chan []byte), flushes: make(chan flush),
		cancel: cancel, over: make(chan struct{}),
	}
	k := &pieceKeeper{store: s, name: name, cfg: cfg, number: 1, results: make(chan error, 1)}
	go func() {
		defer close(j.over)
		j.failed = k.run(life, j)
	}()
	return j
}

// Write implements [Journal]. It waits while the goroutine takes no line: see acceptingLines.
func (j *pieces) Write(ctx context.Context, line []byte) error {
	if err := checkLine(line); err != nil {
		return fmt.Errorf("store: journal %s: %w", j.name, err)
	}
	select {
	case j.lines <- append(bytes.Clone(line), '\n'):
		return nil
	case <-j.over:
		return j.endError()
	case <-ctx.Done():
		return fmt.Errorf("store: journal %s: %w", j.name, ctx.Err())
	}
}

// Sync implements [Journal]. It only reports whether the journal has ended: pieces are written when they are due.
func (j *pieces) Sync(context.Context) error {
	select {
	case <-j.over:
		return j.endError()
	default:
		return nil
	}
}

// Flush implements [Journal]. It returns the error of one failed write; the goroutine goes on
// trying.
func (j *pieces) Flush(ctx context.Context) error {
	f := flush{done: make(chan error, 1)}
	select {
	case j.flushes <- f:
	case <-j.over:
		return j.endError()
	}
	select {
	case err := <-f.done:
		return err
	case <-j.over:
		return j.endError()
	case <-ctx.Done():
		return fmt.Errorf("store: journal %s: flush: %w", j.name, ctx.Err())
	}
}

func (j *pieces) endError() error {
	return fmt.Errorf("store: journal %s: %w: %w", j.name, ErrEnded, j.failed)
}

func (j *pieces) Close(ctx context.Context) error {
	err := j.Flush(ctx)
	j.cancel()
	<-j.over
	return err
}

// pieceKeeper is the state of a journal's goroutine.
type pieceKeeper struct {
	store     Store
	name      string
	cfg       JournalConfig
	gathering piece
	toWrite   *piece // being written, or to be written again
	retryAt   time.Time
	writing   bool
	results   chan error // results of puts
	number    int        // of the next piece to be written
	written   int        // lines in written pieces
	flushes   []flush
}

type piece struct {
	content []byte
	lines   int
	first   time.Time // arrival of its first line
}

// run gathers lines, and writes each piece when it is due. It returns why the journal is over,
// which is never nil. It first waits for a write under way, so that Close leaves nothing running.
func (k *pieceKeeper) run(life context.Context, j *pieces) error {
	timer := k.cfg.Clock.NewTimer(k.cfg.Every)
	defer timer.Stop()
	for {
		k.writeDue(life)
		timer.Reset(k.wait())
		select {
		case line := <-k.acceptingLines(j.lines):
			k.add(line)
		case f := <-j.flushes:
			k.flush(f)
		case err := <-k.results:
			if err := k.handleResult(err); err != nil {
				return err
			}
		case <-timer.Chan():
		case <-life.Done():
			if k.writing {
				<-k.results //nolint:errcheck // no caller waits for it any more
			}
			return errClosed
		}
	}
}

// acceptingLines returns lines, or nil while one piece is not written yet and the next one is full. A nil channel makes
// writers wait.
func (k *pieceKeeper) acceptingLines(lines chan []byte) chan []byte {
	if k.toWrite != nil && k.full() {
		return nil
	}
	return lines
}

func (k *pieceKeeper) full() bool {
	return k.gathering.lines >= k.cfg.Lines || len(k.gathering.content) >= pieceBytes
}

func (k *pieceKeeper) add(line []byte) {
	if k.gathering.lines == 0 {
		k.gathering.first = k.cfg.Clock.Now()
	}
	k.gathering.content = append(k.gathering.content, line...)
	k.gathering.lines++
}

// flush queues a flush that waits for all lines up to now, and has a failed piece written again at once.
func (k *pieceKeeper) flush(f flush) {
	f.lines = k.written + k.gathering.lines
	if k.toWrite != nil {
		f.lines += k.toWrite.lines
	}
	k.flushes = append(k.flushes, f)
	k.retryAt = time.Time{} // the caller waits, so try at once
	k.answerFlushes()
}

// answerFlushes answers the flushes whose lines are all written.
func (k *pieceKeeper) answerFlushes() {
	for len(k.flushes) > 0 && k.flushes[0].lines <= k.written {
		k.flushes[0].done <- nil
		k.flushes = k.flushes[1:]
	}
}

// due returns when the next piece is to be written, if none is being written; never says that there is nothing to write.
func (k *pieceKeeper) due() (at time.Time, never bool) {
	switch {
	case k.toWrite != nil:
		return k.retryAt, false
	case k.gathering.lines == 0:
		return time.Time{}, true
	case k.full() || len(k.flushes) > 0:
		return time.Time{}, false
	}
	return k.gathering.first.Add(k.cfg.Every), false
}

// wait returns the time until the next piece is due. It returns Every while a write is under way.
func (k *pieceKeeper) wait() time.Duration {
	at, never := k.due()
	if never || k.writing {
		return k.cfg.Every
	}
	return max(0, at.Sub(k.cfg.Clock.Now()))
}

// writeDue begins to write a piece that is due. The piece toWrite never changes, as the first try may have succeeded. So a
// second try must write the same.
func (k *pieceKeeper) writeDue(life context.Context) {
	at, never := k.due()
	if k.writing || never || at.After(k.cfg.Clock.Now()) {
		return
	}
	if k.toWrite == nil {
		cut := k.gathering
		k.toWrite, k.gathering = &cut, piece{}
	}
	k.writing = true
	number, content := k.number, k.toWrite.content
	go func() { k.results <- k.createPiece(life, number, content) }()
}

// createPiece writes a piece, or finds that an earlier try has written it.
func (k *pieceKeeper) createPiece(ctx context.Context, number int, content []byte) error {
	if number >= MaxPieces {
		return errFull
	}
	name := pieceName(k.name, number)
	err := CreateBytes(ctx, k.store, name, content)
	if !errors.Is(err, ErrExists) {
		return err
	}
	in, err := k.store.Open(ctx, name, 0, int64(len(content))+1)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	existing, err := io.ReadAll(in)
	if err == nil && !bytes.Equal(existing, content) {
		return errOtherWriter
	}
	return err
}

// handleResult handles the end of a write. An error that it returns ends the journal. Any other error goes to the
// waiting flushes, and the piece is written again.
func (k *pieceKeeper) handleResult(err error) error {
	k.writing = false
	switch {
	case errors.Is(err, errOtherWriter), errors.Is(err, errFull):
		return err
	case err != nil:
		k.retryAt = k.cfg.Clock.Now().Add(pieceRetryWait)
		for _, f := range k.flushes {
			f.done <- err
		}
		k.flushes = nil
		return nil
	}
	k.written += k.toWrite.lines
	k.number++
	k.toWrite = nil
	k.answerFlushes()
	return nil
}
