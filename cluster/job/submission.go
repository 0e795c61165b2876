package job

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headrace/headrace/cluster/store"
)

// A Submission identifies repeated submissions of a job: the same inputs, settings and output are the same job.
type Submission struct {
	// Key names the object that names the job; "" is for a job that is another each time.
	Key      string            `json:"key"`
	Output   string            `json:"output,omitempty"`   // by its whole path
	Settings map[string]string `json:"settings,omitempty"` // flags that were set, by their names
}

// submissionsFolder holds the objects that name the jobs of submissions. namedFolder is its part for jobs that were given a name.
const (
	submissionsFolder = "submissions/"
	namedFolder       = "named/"
)

// maxClaimed bounds the bytes read of the name of a job.
const maxClaimed = 1 << 10

// pace lists the settings that do not change what is bought: a submission that differs only in them is the same.
var pace = []string{"weight", "chunk-lines", "open", "deadline", "max-failures", "max-cost", "price", "prices"}

// KeyOf returns the key of a record's submission: by the name that it was given, or by what it asks. The store identifies an
// input, so a changed input gives another key. Before the slash two keys are equal if only their inputs differ.
func KeyOf(r *Record, name string) (string, error) {
	if name != "" {
		return namedFolder + name, CheckName(name)
	}
	asked := Submission{Output: r.Submission.Output, Settings: maps.Clone(r.Submission.Settings)}
	for _, flag := range pace {
		delete(asked.Settings, flag)
	}
	place, err := sumOf(asked)
	if err != nil {
		return "", err
	}
	what, err := sumOf(r.given())
	return place + "/" + what, err
}

// sumOf returns a short name for its arguments.
func sumOf(all ...any) (string, error) {
	text, err := json.Marshal(all) // which has maps in order
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), err
}

// given returns the inputs with which the job was submitted, as they were then.
func (r *Record) given() (all []Object) {
	for i := range r.Inputs {
		if in := &r.Inputs[i]; in.Added == 0 {
			all = append(all, in.object())
		}
	}
	return all
}

func (in *Input) object() Object {
	if in.Given != nil {
		return *in.Given
	}
	return in.Objects[0]
}

// Claim returns the name of the job of a key: the given name, unless the key had another before. The job need not exist: its
// submitter may be about to create it, or may have died. In both cases it is right to create a job of that name.
func Claim(ctx context.Context, s store.Store, key, name string) (string, error) {
	for {
		err := store.CreateBytes(ctx, s, submissionsFolder+key, []byte(name+"\n"))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, store.ErrExists) {
			return "", fmt.Errorf("job: submit %s: %w", name, err)
		}
		there, err := claimed(ctx, s, submissionsFolder+key)
		if !errors.Is(err, store.ErrMissing) { // else it was removed just now
			return there, err
		}
	}
}

func claimed(ctx context.Context, s store.Store, object string) (string, error) {
	text, err := store.ReadAll(ctx, s, object, maxClaimed)
	if err != nil {
		return "", fmt.Errorf("job: submission %s: %w", object, err)
	}
	name := strings.TrimSpace(string(text))
	return name, CheckName(name)
}

// Named returns the job of a name: the one that has it, or the one that was submitted under it. ErrMissing if there is none.
func Named(ctx context.Context, s store.Store, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if there, err := hasAny(ctx, s, recordsPrefix(name)); there || err != nil {
		return name, err
	}
	job, err := claimed(ctx, s, submissionsFolder+namedFolder+name)
	if errors.Is(err, store.ErrMissing) {
		err = fmt.Errorf("job: %s: %w", name, ErrMissing)
	}
	return job, err
}

// Disclaim frees a key, unless it names another job by now. If job is "" it frees the key anyway.
func Disclaim(ctx context.Context, s store.Store, key, job string) error {
	if job != "" {
		there, err := claimed(ctx, s, submissionsFolder+key)
		if errors.Is(err, store.ErrMissing) || err == nil && there != job {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.Delete(ctx, submissionsFolder+key)
}

// Earlier returns the latest job that asked the same of another input, or of this input before it changed; "" if there is none.
func Earlier(ctx context.Context, s store.Store, key string) (latest string, err error) {
	place, _, _ := strings.Cut(key, "/")
	if place+"/" == namedFolder {
		return "", nil
	}
	for o, err := range s.List(ctx, submissionsFolder+place+"/", "") {
		if err != nil {
			return "", fmt.Errorf("job: submissions: %w", err)
		}
		if o.Name == submissionsFolder+key {
			continue
		}
		if name, err := claimed(ctx, s, o.Name); err == nil { // else it was removed just now
			latest = max(latest, name)
		}
	}
	return latest, nil
}

// Differences lists how a submitted job differs from one that is asked for, flag by flag and input by input. For a job of a
// program without submissions it compares only the inputs.
func Differences(is, asked *Record) (all []string) {
	had, has := is.given(), asked.given()
	for i := range max(len(had), len(has)) {
		switch {
		case i >= len(has):
			all = append(all, fmt.Sprintf("it has the input %s", is.Inputs[i].Name))
		case i >= len(had) || had[i].Store != has[i].Store || had[i].Name != has[i].Name:
			all = append(all, fmt.Sprintf("%s is not its input", asked.Inputs[i].Name))
		case had[i] != has[i]:
			all = append(all, fmt.Sprintf("%s has changed since", asked.Inputs[i].Name))
		}
	}
	if is.Submission == nil || asked.Submission == nil {
		return all
	}
	if before, now := is.Submission.Output, asked.Submission.Output; before != now {
		all = append(all, fmt.Sprintf("--output %s: it has %s", now, before))
	}
	before, now := is.Submission.Settings, asked.Submission.Settings
	flags := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(now)))
	slices.Sort(flags)
	for _, flag := range slices.Compact(flags) {
		if before[flag] != now[flag] {
			all = append(all, fmt.Sprintf("--%s %s: it has %s", flag, cmp.Or(now[flag], "is not set"), cmp.Or(before[flag], "none")))
		}
	}
	return all
}
