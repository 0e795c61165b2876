package index

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Source is a job and its inputs, as one machine reads them. Many goroutines may call its methods, if they may
// call Open and Takes.
type Source struct {
	Store  store.Store // the job's own
	Record job.Record
	// Open opens the store of an input by its address; nil: all inputs are in the job's own store.
	Open func(ctx context.Context, address string) (store.Store, error)
	// Serves and Takes are prompts.Config's.
	Serves []string
	Takes  func(*prompts.Request) error

	// For tests; 0 means pieceBytes and mostHeld.
	pieceBytes, heldBytes int64
}

// names checks that the record has an object of an input: an older record lacks inputs that were added later.
func (s *Source) names(input, object int) error {
	if all := s.Record.Inputs; input < 0 || input >= len(all) || object < 0 || object >= len(all[input].Objects) {
		return fmt.Errorf("version %d of the job's record names no object %d of input %d", s.Record.Version, object, input)
	}
	return nil
}

// storeOf returns the store of an object.
func (s *Source) storeOf(ctx context.Context, o *job.Object) (store.Store, error) {
	switch {
	case o.Store == "":
		return s.Store, nil
	case s.Open == nil:
		return nil, errors.New("no other store than the job's own is known")
	}
	return s.Open(ctx, o.Store)
}

// open reads an object of an input, if the object has not changed.
func (s *Source) open(ctx context.Context, o *job.Object, offset, length int64) (io.ReadCloser, error) {
	in, err := s.storeOf(ctx, o)
	if err != nil {
		return nil, err
	}
	return store.OpenSame(ctx, in, o.Name, o.Identity, offset, length)
}

// config returns the settings for reading the lines of an input.
func (s *Source) config(in *job.Input) (prompts.Config, error) {
	cfg, err := s.Record.Reading.Config()
	if err != nil {
		return cfg, err
	}
	cfg.Serves, cfg.Takes = s.Serves, s.Takes
	return in.ReaderOf(cfg)
}
