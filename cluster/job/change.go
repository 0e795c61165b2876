package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/headrace/headrace/cluster/store"
)

// Why a job is not created, or not found; errors.Is finds them.
var (
	ErrTaken   = errors.New("a job of that name is there")
	ErrMissing = errors.New("no job of that name is there")
)

// Create writes a job's first record, with its format, version and defaults filled in.
func Create(ctx context.Context, s store.Store, r Record) (Record, error) {
	if err := CheckName(r.Job); err != nil {
		return r, err
	}
	r.Version, r.State, r.Weight = 0, Indexing, cmp.Or(r.Weight, 1)
	r.Cut = r.Cut.withDefaults()
	err := write(ctx, s, &r)
	if errors.Is(err, store.ErrExists) {
		err = ErrTaken
	}
	if err != nil {
		return r, fmt.Errorf("job: create %s: %w", r.Job, err)
	}
	return r, nil
}

func write(ctx context.Context, s store.Store, r *Record) error {
	r.Format = FormatOf(r.Format)
	if err := r.check(); err != nil {
		return err
	}
	text, err := r.marshal()
	if err != nil {
		return err
	}
	return store.CreateBytes(ctx, s, recordName(r.Job, r.Version), text)
}

// Load reads a job's latest record.
func Load(ctx context.Context, s store.Store, name string) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	r, err := load(ctx, s, name)
	if err != nil {
		return r, fmt.Errorf("job: load %s: %w", name, err)
	}
	return r, nil
}

func load(ctx context.Context, s store.Store, name string) (Record, error) {
	latest := -1
	for o, err := range s.List(ctx, recordsPrefix(name), "") {
		if err != nil {
			return Record{}, err
		}
		if version, ok := recordVersion(name, o.Name); ok {
			latest = max(latest, version)
		}
	}
	if latest < 0 {
		return Record{}, ErrMissing
	}
	text, err := store.ReadAll(ctx, s, recordName(name, latest), MaxRecord)
	if err != nil {
		return Record{}, err
	}
	r, err := parseRecord(text)
	if err == nil && (r.Job != name || r.Version != latest) {
		err = fmt.Errorf("%w: it says that it is version %d of %q", ErrRecord, r.Version, r.Job)
	}
	return r, err
}

// Change writes a job's next record: what change makes of the latest. Of two callers at once, the second changes
// the record that the first has left, so change may be called several times. An error of change ends Change,
// which returns it as it is. If change leaves the record as it was, nothing is written. After an error of the
// store the change may still have been made.
func Change(ctx context.Context, s store.Store, name string, change func(*Record) error) (Record, error) {
	for {
		r, err := Load(ctx, s, name)
		if err != nil {
			return r, err
		}
		before, err := r.marshal()
		if err != nil {
			return r, fmt.Errorf("job: change %s: %w", name, err)
		}
		version := r.Version
		if err := change(&r); err != nil {
			return r, err
		}
		if after, err := r.marshal(); err == nil && string(after) == string(before) {
			return r, nil
		}
		r.Job, r.Version = name, version+1
		switch err := write(ctx, s, &r); {
		case err == nil:
			return r, nil
		case !errors.Is(err, store.ErrExists):
			return r, fmt.Errorf("job: change %s: %w", name, err)
		}
	}
}

// List yields the names of all jobs in a store, in the store's order: a-b before a.
func List(ctx context.Context, s store.Store) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			name, err := nextFolder(ctx, s, after)
			var there bool
			if err == nil && name != "" {
				there, err = anyOf(ctx, s, recordsPrefix(name))
			}
			if err != nil {
				yield("", fmt.Errorf("job: list: %w", err))
				return
			}
			if name == "" || there && !yield(name, nil) {
				return
			}
			after = Folder(name) + "~" // behind all that it has: no name of ours has such a byte
		}
	}
}

// nextFolder returns the first name of a possible job behind after; "" if there is none.
func nextFolder(ctx context.Context, s store.Store, after string) (string, error) {
	for o, err := range s.List(ctx, jobsFolder, after) {
		if err != nil {
			return "", err
		}
		rest, _ := strings.CutPrefix(o.Name, jobsFolder)
		name, _, _ := strings.Cut(rest, "/")
		if CheckName(name) == nil {
			return name, nil
		}
	}
	return "", nil
}

func anyOf(ctx context.Context, s store.Store, prefix string) (bool, error) {
	for _, err := range s.List(ctx, prefix, "") {
		return err == nil, err
	}
	return false, nil
}

// Remove deletes everything that a store has of a job. The records go last, so that a caller can repeat it after an error.
func Remove(ctx context.Context, s store.Store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	for _, records := range []bool{false, true} {
		var objects []string // a store need not like that what it lists is deleted
		for o, err := range s.List(ctx, Folder(name), "") {
			if err != nil {
				return fmt.Errorf("job: remove %s: %w", name, err)
			}
			if strings.HasPrefix(o.Name, recordsPrefix(name)) == records {
				objects = append(objects, o.Name)
			}
		}
		for _, o := range objects {
			if err := s.Delete(ctx, o); err != nil {
				return fmt.Errorf("job: remove %s: %w", name, err)
			}
		}
	}
	return nil
}
