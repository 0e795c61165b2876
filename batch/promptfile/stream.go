package promptfile

import (
	"io"

	"github.com/headrace/headrace/batch/prompts"
)

// stream reads an input that can be read only once, in a goroutine of its own. Nothing ends
// a stalled read from a terminal or a pipe. So a run that is over leaves that goroutine
// behind until the process ends.
type stream struct {
	in    *intake
	lines chan streamed
	left  chan struct{} // closed when no lines are taken any more
}

type streamed struct {
	req prompts.Request
	err error
}

func newStream(in *intake) *stream {
	return &stream{in: in, lines: make(chan streamed), left: make(chan struct{})}
}

// all yields the lines until the input ends or the run must take no more.
func (s *stream) all(yield func(prompts.Request, error) bool) {
	defer close(s.left)
	go s.read()
	for {
		select {
		case l, ok := <-s.lines:
			if !ok || !yield(l.req, l.err) {
				return
			}
			continue
		case <-s.in.halted:
		case <-s.in.drain:
		case <-s.in.ctx.Done():
		}
		s.in.left = true
		return
	}
}

func (s *stream) read() {
	defer close(s.lines)
	cfg := s.in.cfg.reader()
	cfg.Takes = s.in.takes()
	err := s.in.cfg.Input.Read(cfg, func(file io.Reader, cfg prompts.Config) error {
		prompts.NewReader(file, cfg).All()(s.give)
		return nil
	})
	if err != nil {
		s.give(prompts.Request{}, err)
	}
}

func (s *stream) give(req prompts.Request, err error) bool {
	select {
	case s.lines <- streamed{req, err}:
		return true
	case <-s.left:
		return false
	}
}
