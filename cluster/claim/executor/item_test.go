package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/claim"
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

// An item that is asked again waits meanwhile, and nothing of it is in flight: a claim that leaves need not wait for it. The
// result of any other call ends its item.
func TestAnItemThatIsAskedAgainWaits(t *testing.T) {
	x, err := New(Config{
		Claim: claim.Config{Who: "w", Concurrency: 1}, Store: faulty{}, Queue: &otherQueue{}, Peers: &peers{},
		Open: func(context.Context, string) (*Job, error) { return nil, errors.New("there is no job") },
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for f := range x.news {
			f()
			for p := range x.begins { // there is no claim: the test lets each call leave
				x.answerCall(p, true)
			}
		}
	}()
	defer func() { close(x.news); <-over }()
	for name, c := range map[string]struct {
		err  error
		want stage
	}{
		"answered":         {nil, calls},
		"does not fit":     {&provider.Error{Kind: provider.Misfit}, calls},
		"is asked again":   {&provider.Error{Kind: provider.Misfit, AskAgain: true}, waits},
		"server's trouble": {&provider.Error{Kind: provider.Server}, waits},
	} {
		job := &Job{Call: func(context.Context, *promptfile.Item) (provider.Reply, error) { return provider.Reply{}, c.err }}
		it := &Item{Item: &promptfile.Item{}, job: job, claim: &claimState{}}
		if _, err := x.Call(t.Context(), it); !errors.Is(err, c.err) || it.stage != c.want {
			t.Errorf("%s: stage %d, want %d: %v", name, it.stage, c.want, err)
		}
	}
}
