package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/store"
)

// Fetch makes the files that one process would have written. Each may be an object of a store. Then Fetch makes it on
// this machine, in the folder for temporary files, and replaces the object with it.
func (n *Node) Fetch(ctx context.Context, name, output, failed string, partial bool, others ...string) (parts.Fetched, error) {
	r, err := job.Load(ctx, n.home, name)
	if err != nil {
		return parts.Fetched{}, err
	}
	plan, err := index.LoadPlan(ctx, n.home, &r)
	if err != nil {
		return parts.Fetched{}, err
	}
	if r.State == job.Done && !partial {
		if err := n.checkWhole(ctx, &r, plan.Chunks); err != nil {
			return parts.Fetched{}, err
		}
	}
	f := parts.Fetch{Store: n.home, Job: name, Chunks: plan.Chunks, Partial: partial}
	if !isStoreAddress(output) && !isStoreAddress(failed) {
		return f.Files(ctx, output, failed, others...)
	}
	return fetchToStore(ctx, &f, output, failed, others)
}

// Lines passes each line of a job's finished parts to take, as [parts.Fetch.Lines] does. A job whose input has not been read
// has none. For a job that is done the error is ErrLost if the store has lost a part, after all other lines were passed.
func (n *Node) Lines(ctx context.Context, r *job.Record, take func(text []byte) error) error {
	if r.Plan == "" {
		return nil
	}
	plan, err := index.LoadPlan(ctx, n.home, r)
	if err != nil {
		return err
	}
	f := parts.Fetch{Store: n.home, Job: r.Job, Chunks: plan.Chunks, Partial: true}
	if _, err := f.Lines(ctx, take); err != nil || r.State != job.Done {
		return err
	}
	return n.checkWhole(ctx, r, plan.Chunks)
}

// fetchToStore makes the files in a temporary folder, and copies them to the store. It first copies the results of an
// earlier fetch here, so that they are kept.
func fetchToStore(ctx context.Context, f *parts.Fetch, output, failed string, others []string) (got parts.Fetched, err error) {
	dir, err := os.MkdirTemp("", "headrace-fetch-")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var outputs []*storeOutput
	defer func() {
		for _, a := range outputs {
			err = errors.Join(err, store.Close(a.store))
		}
	}()
	paths := []string{output, failed}
	for i, address := range paths {
		if !isStoreAddress(address) {
			continue
		}
		a, err := openStoreOutput(ctx, address, filepath.Join(dir, fmt.Sprint(i, ".jsonl")))
		if err != nil {
			return got, err
		}
		outputs, paths[i] = append(outputs, a), a.path
		if err := a.download(ctx); err != nil {
			return got, fmt.Errorf("node: fetch into %s: %w", address, err)
		}
	}
	if got, err = f.Files(ctx, paths[0], paths[1], others...); err != nil {
		return got, fmt.Errorf("node: fetch into %s: %w", output, err)
	}
	for _, a := range outputs {
		if err := a.upload(ctx); err != nil {
			return got, fmt.Errorf("node: fetch into %s: %w", a.address, err)
		}
	}
	return got, nil
}

// storeOutput is an output in a store: the object, and the file on this machine that replaces it.
type storeOutput struct {
	address, name, path string
	store               store.Store
}

// openStoreOutput opens the store of an output's address. path is the output's file on this machine.
func openStoreOutput(ctx context.Context, address, path string) (*storeOutput, error) {
	folder, name, err := splitAddress(address)
	if err == nil && name == "" {
		err = fmt.Errorf("node: output %s has no name behind its last slash", address)
	}
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, folder)
	return &storeOutput{address, name, path, s}, err
}

// download copies the object of an earlier fetch to the file, so that results of other jobs in it are not lost.
func (a *storeOutput) download(ctx context.Context) error {
	in, err := a.store.Open(ctx, a.name, 0, -1)
	if errors.Is(err, store.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.Create(a.path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// upload replaces the object with the file. Without a file it leaves the object as it is.
func (a *storeOutput) upload(ctx context.Context) error {
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err == nil {
		err = a.store.Delete(ctx, a.name)
	}
	if err == nil {
		err = a.store.Create(ctx, a.name, file, info.Size())
	}
	return err
}
