package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/store"
)

// jobName makes a job's name of the time of its submission, so that a list has jobs in order, and of chance.
func (n *Node) jobName() string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789" // no letter that looks like another
	chance := rand.New(rand.NewPCG(n.cfg.Seed, n.objects.Add(1)))
	var suffix strings.Builder
	for range 4 {
		suffix.WriteByte(letters[chance.IntN(len(letters))])
	}
	return n.clock.Now().UTC().Format("20060102-150405-") + suffix.String()
}

// ObjectOf names an input for a job. A path becomes absolute, and its folder becomes the store, so that other machines
// find it under the same name.
func ObjectOf(ctx context.Context, input string) (o job.Object, err error) {
	folder, name, err := splitAddress(input)
	if err != nil {
		return o, err
	}
	s, err := store.Open(ctx, folder)
	if err != nil {
		return o, err
	}
	defer func() { _ = store.Close(s) }() // it was only read
	return objectOf(ctx, s, folder, name, input)
}

// objectOf describes an object of an open store. Errors name the input.
func objectOf(ctx context.Context, s store.Store, folder, name, input string) (job.Object, error) {
	identity, size, err := s.Identity(ctx, name)
	if err != nil {
		return job.Object{}, fmt.Errorf("%s: %w", input, err)
	}
	return job.Object{Store: folder, Name: name, Identity: identity, Bytes: size}, nil
}

// isStoreAddress reports whether an address is in a store, and is no path.
func isStoreAddress(address string) bool { return strings.Contains(address, "://") }

// splitAddress returns the folder of an address as a store, and the name in it; "" is the folder itself.
func splitAddress(address string) (folder, name string, err error) {
	if isStoreAddress(address) {
		address, query, _ := strings.Cut(address, "?")
		i := strings.LastIndexByte(address, '/')
		if folder, name = address[:i], address[i+1:]; query != "" {
			folder += "?" + query
		}
		return folder, name, nil
	}
	path, err := filepath.Abs(address)
	if err != nil {
		return "", "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", err
	}
	if strings.HasSuffix(address, "/") {
		return path, "", nil
	}
	return filepath.Dir(path), filepath.Base(path), nil
}

// InputsOf names inputs for a job: the one of that name, or, if the name ends in a slash, all inputs in that folder, in
// order. The caller sets their formats.
func InputsOf(ctx context.Context, input string) (all []job.Input, err error) {
	folder, name, err := splitAddress(input)
	if err != nil {
		return nil, err
	}
	if name != "" {
		o, err := ObjectOf(ctx, input)
		return []job.Input{{Name: input, Objects: []job.Object{o}}}, err
	}
	s, err := store.Open(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close(s) }() // it was only read
	base, _, _ := strings.Cut(input, "?")
	for found, err := range s.List(ctx, "", "") {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", input, err)
		}
		if found.Size == 0 { // a console makes such an object for a folder
			continue
		}
		o, err := objectOf(ctx, s, folder, found.Name, base+found.Name)
		if err != nil {
			return nil, err
		}
		if all = append(all, job.Input{Name: base + found.Name, Objects: []job.Object{o}}); len(all) > job.MaxInputs {
			return nil, fmt.Errorf("%s: more than %d inputs", input, job.MaxInputs)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no input is there", input)
	}
	return all, nil
}

// withInputs returns the record with these inputs instead of its own. It inspects each one and unpacks a packed one. A
// limit above 0 keeps only that many items of each input.
func (n *Node) withInputs(ctx context.Context, r job.Record, c *Caller, inputs []job.Input, limit int) (job.Record, error) {
	r.Inputs = nil
	for _, in := range inputs {
		in, err := n.inspect(ctx, &r, c, in, limit)
		if err != nil {
			return r, err
		}
		r.Inputs = append(r.Inputs, in)
	}
	return r, nil
}

// inspect returns an input with its facts filled in, and with the given object noted.
func (n *Node) inspect(ctx context.Context, r *job.Record, c *Caller, in job.Input, limit int) (job.Input, error) {
	given := in.Objects[0]
	file := index.File{Name: in.Name, Format: in.Format, Store: given.Store, Object: given.Name, Limit: limit}
	in, err := n.sourceOf(r, c).Inspect(ctx, file, n.objectName())
	in.Given = &given
	return in, err
}

// Submit makes a job of the record. The caller sets inputs, reading and asking, each input as one object from
// [ObjectOf]. A limit is the number of items wanted, the first of each input; 0 is all. Then the cluster goes on by
// itself. Each call makes another job.
func (n *Node) Submit(ctx context.Context, r job.Record, c *Caller, limit int) (job.Record, error) {
	if err := n.ensure(ctx, n.bus.EnsureStreams); err != nil {
		return r, err
	}
	r.Job = n.jobName()
	return n.create(ctx, r, c, limit)
}

// SubmitOnce submits a record that has a submission. If a job of the same submission, or of the given name, is there,
// it returns that job and met is true. Of several calls at once, one creates the job.
func (n *Node) SubmitOnce(ctx context.Context, r job.Record, c *Caller, limit int, name string) (_ job.Record, met bool, err error) {
	if err := n.ensure(ctx, n.bus.EnsureStreams); err != nil {
		return r, false, err
	}
	key, err := job.KeyOf(&r, name)
	if err != nil {
		return r, false, err
	}
	own := n.jobName()
	if name != "" {
		own = name + own[strings.LastIndexByte(own, '-'):]
	}
	if err := job.CheckName(own); err != nil {
		return r, false, err
	}
	if r.Job, err = job.Claim(ctx, n.home, key, own); err != nil {
		return r, false, err
	}
	r.Submission.Key = key
	present, err := job.Load(ctx, n.home, r.Job)
	if errors.Is(err, job.ErrMissing) {
		if present, err = n.create(ctx, r, c, limit); err == nil {
			return present, false, n.sayEarlier(ctx, &present)
		}
		if errors.Is(err, job.ErrTaken) {
			present, err = job.Load(ctx, n.home, r.Job)
		}
	}
	return present, true, err
}

// sayEarlier tells the user if an earlier job had the same output and settings, but other inputs.
func (n *Node) sayEarlier(ctx context.Context, r *job.Record) error {
	earlier, err := job.Earlier(ctx, n.home, r.Submission.Key)
	if err == nil && earlier != "" {
		n.sayf("the input has changed since job %s was submitted, which has this output and these settings: this is another job; move the files of that one away before this one ends", earlier)
	}
	return err
}

// StartOver makes the submission, or the given name, another job from now on. The present job stays.
func (n *Node) StartOver(ctx context.Context, r *job.Record, name string) error {
	key, err := job.KeyOf(r, name)
	if err == nil {
		err = job.Disclaim(ctx, n.home, key, "")
	}
	return err
}

// Named returns a job's own name: the given one, or that of the job submitted under it.
func (n *Node) Named(ctx context.Context, name string) (string, error) {
	return job.Named(ctx, n.home, name)
}

// create makes a job of a record that has a name.
func (n *Node) create(ctx context.Context, r job.Record, c *Caller, limit int) (job.Record, error) {
	r, err := n.withInputs(ctx, r, c, r.Inputs, limit)
	if err != nil {
		return r, err
	}
	r, err = job.Create(ctx, n.home, r)
	if err != nil {
		return r, err
	}
	n.announceUntilSent(ctx, r.Job)
	return r, nil
}

// Home returns a folder next to an output, where a trial keeps its cluster.
func Home(output string) (string, error) {
	path, err := filepath.Abs(output)
	if err != nil {
		return "", err
	}
	home := path + ".cluster"
	return home, os.MkdirAll(home, 0o700)
}
