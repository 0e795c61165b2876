package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/provider"
)

// A call without money does not leave, and its item counts as one that was not run. A call that the claim does not let go
// gives its money back.
func TestNoCallLeavesWithoutMoney(t *testing.T) {
	spent := errors.New("no money")
	var ended []error
	job := &Job{
		Call: func(context.Context, *promptfile.Item) (provider.Reply, error) {
			t.Error("a call has left")
			return provider.Reply{}, nil
		},
		Reserve: func(context.Context, *promptfile.Item) (func(provider.Reply, error), error) { return nil, spent },
	}
	x := &Executor{over: make(chan struct{})}
	close(x.over) // no claim lets a call go
	it := &Item{Item: &promptfile.Item{}, job: job, claim: &claimState{}}
	if _, err := x.Call(t.Context(), it); !errors.Is(err, ErrRefused) || !provider.Unsent(err) || it.stage != unheard {
		t.Errorf("without money: %v, stage %d", err, it.stage)
	}
	job.Reserve = func(context.Context, *promptfile.Item) (func(provider.Reply, error), error) {
		return func(_ provider.Reply, err error) { ended = append(ended, err) }, nil
	}
	it = &Item{Item: &promptfile.Item{}, job: job, claim: &claimState{}}
	if _, err := x.Call(t.Context(), it); !provider.Unsent(err) || len(ended) != 1 || !errors.Is(ended[0], ErrRefused) {
		t.Errorf("not let go: %v, money: %v", err, ended)
	}
}
