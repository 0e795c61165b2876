package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
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
	err := writeRecord(ctx, s, &r)
	if errors.Is(err, store.ErrExists) {
		err = ErrTaken
	}
	if err != nil {
		return r, fmt.Errorf("job: create %s: %w", r.Job, err)
	}
	return r, nil
}

// writeRecord checks a record and writes it as a new object: [store.ErrExists] if its version is taken.
func writeRecord(ctx context.Context, s store.Store, r *Record) error {
	if r.Format = FormatOf(r.Format); len(r.Caps) > 0 {
		r.Format = RecordFormat // an older worker would call without money
	}
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
	r, err := loadLatest(ctx, s, name)
	if err != nil {
		return r, fmt.Errorf("job: load %s: %w", name, err)
	}
	return r, nil
}

// loadLatest finds the latest version of a job's record by a list, and reads it. It refuses a record
// whose text names another job or version.
func loadLatest(ctx context.Context, s store.Store, name string) (Record, error) {
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
		switch err := writeRecord(ctx, s, &r); {
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
			var hasRecord bool
			if err == nil && name != "" {
				hasRecord, err = hasAny(ctx, s, recordsPrefix(name))
			}
			if err != nil {
				yield("", fmt.Errorf("job: list: %w", err))
				return
			}
			if name == "" || hasRecord && !yield(name, nil) {
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

// hasAny reports whether the store has an object whose name begins with prefix.
func hasAny(ctx context.Context, s store.Store, prefix string) (bool, error) {
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
	for _, wantRecords := range []bool{false, true} {
		var objects []string // a store need not like that what it lists is deleted
		for o, err := range s.List(ctx, Folder(name), "") {
			if err != nil {
				return fmt.Errorf("job: remove %s: %w", name, err)
			}
			if strings.HasPrefix(o.Name, recordsPrefix(name)) == wantRecords {
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

// ErrName says that a job cannot have such a name; errors.Is finds it.
var ErrName = errors.New("a job's name has small letters, digits and hyphens, 64 of them at most, and begins with a letter or digit")

// maxName bounds the bytes of a job's name. With everything around it, a name in a store then
// stays well below the limits of stores.
const maxName = 64

// CheckName returns why a job cannot have such a name (ErrName), or nil. Any name that passes is one
// segment of a name in a store, and one token of a subject on a bus.
func CheckName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if name == "" || len(name) > maxName || name[0] == '-' || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("job: %q: %w", name, ErrName)
	}
	return nil
}

// Names of folders in a store. Numbers have leading zeros, so that a list has them in order.
const (
	jobsFolder = "jobs/"
	sumsFolder = "sums/"
)

// PerFolder is the number of chunks whose parts share a folder: the page size of a list in S3, and a
// size that folders of a file system handle quickly.
const PerFolder = 1000

// Folder returns the prefix of the names of all objects of a job.
func Folder(job string) string { return jobsFolder + job + "/" }

func recordsPrefix(job string) string { return Folder(job) + "job-" }

func recordName(job string, version int) string {
	return fmt.Sprintf("%s%06d.json", recordsPrefix(job), version)
}

// recordVersion undoes recordName.
func recordVersion(job, name string) (version int, ok bool) {
	digits, _ := strings.CutPrefix(name, recordsPrefix(job))
	digits, _ = strings.CutSuffix(digits, ".json")
	version, err := strconv.Atoi(digits)
	return version, err == nil && recordName(job, version) == name
}

// IndexFolder returns the folder of the plans and indexes of a job's inputs.
func IndexFolder(job string) string { return Folder(job) + "index/" }

// InputFolder returns the folder of unpacked inputs.
func InputFolder(job string) string { return Folder(job) + "input/" }

// MoneyFolder returns the folder of the notes into which a job's cap is cut.
func MoneyFolder(job string) string { return Folder(job) + "money/" }

// WorkFolder returns the folder of the journals of a chunk's claims.
func WorkFolder(job string, chunk, round int) string {
	return fmt.Sprintf("%swork/%09d%s/", Folder(job), chunk, roundSuffix(round))
}

// PartsFolder returns the folder of the parts of all chunks, of all rounds.
func PartsFolder(job string) string { return Folder(job) + "parts/" }

// PartFolder returns the n-th folder of parts: of a thousand chunks.
func PartFolder(job string, n int) string { return fmt.Sprintf("%s%06d/", PartsFolder(job), n) }

// PartName returns the name of a chunk's part of a round.
func PartName(job string, chunk, round int) string {
	return fmt.Sprintf("%s%03d%s", PartFolder(job, chunk/PerFolder), chunk%PerFolder, roundSuffix(round))
}

// ParsePart undoes PartName; ok is false for the name of anything but a part.
func ParsePart(job, name string) (chunk, round int, ok bool) {
	rest, _ := strings.CutPrefix(name, PartsFolder(job))
	folder, rest, _ := strings.Cut(rest, "/")
	in, ending, _ := strings.Cut(rest, ".r")
	thousand, err := strconv.Atoi(folder)
	n, err2 := strconv.Atoi(in)
	if ending != "" {
		round, _ = strconv.Atoi(ending)
	}
	chunk = thousand*PerFolder + n
	return chunk, round, err == nil && err2 == nil && chunk >= 0 && PartName(job, chunk, round) == name
}

// SumsFolder returns the folder of the sums of all folders of parts.
func SumsFolder(job string) string { return Folder(job) + sumsFolder }

// SumsName returns the name of the sums of the n-th folder of parts. They exist once that folder is whole.
func SumsName(job string, n, round int) string {
	return fmt.Sprintf("%s%06d%s", SumsFolder(job), n, roundSuffix(round))
}

// ParseSums undoes SumsName; ok is false for any other name.
func ParseSums(job, name string) (n, round int, ok bool) {
	rest, _ := strings.CutPrefix(name, SumsFolder(job))
	digits, ending, _ := strings.Cut(rest, ".r")
	n, err := strconv.Atoi(digits)
	if ending != "" {
		round, _ = strconv.Atoi(ending)
	}
	return n, round, err == nil && n >= 0 && SumsName(job, n, round) == name
}

// DoneName returns the name of the object that marks a round as over.
func DoneName(job string, round int) string { return Folder(job) + "DONE" + roundSuffix(round) }

// FitsName returns the name of the object that says that an answer of the job has fitted its schema.
func FitsName(job string) string { return Folder(job) + "FITS" }

func roundSuffix(round int) string {
	if round == 0 {
		return ""
	}
	return ".r" + strconv.Itoa(round)
}
