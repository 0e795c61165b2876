package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
)

// options are what a user would write for a server of one's own.
func (j job) options() []batch.Option {
	return []batch.Option{batch.WithConcurrency(j.inFlight), batch.WithLocalServer(0)}
}

func (j job) client() (*openai.Client, error) {
	return openai.New(openai.Config{BaseURL: j.url + "/v1", Conns: j.inFlight})
}

// items yields the lines and keeps the fault of reading them.
func (j job) items(fault *error) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { *fault = j.lines(yield) }
}

// library sends raw bytes through a run and keeps no file.
func library(j job) error {
	client, err := j.client()
	if err != nil {
		return err
	}
	var fault error
	call := func(ctx context.Context, line []byte) (provider.Reply, error) {
		return client.Do(ctx, provider.Request{Endpoint: chatPath, Body: line})
	}
	for r, err := range batch.Stream(context.Background(), j.items(&fault), call, j.options()...) {
		if err = errors.Join(err, r.Err); err != nil {
			return err
		}
		if len(r.Value.Body) == 0 {
			return fmt.Errorf("item %d has no answer", r.Index)
		}
	}
	return fault
}

// typed does what naive does, through a run.
func typed(j job) error {
	client, err := j.client()
	if err != nil {
		return err
	}
	out, err := j.create()
	if err != nil {
		return err
	}
	var fault error
	call := func(ctx context.Context, line []byte) (answer goopenai.ChatCompletionResponse, err error) {
		request, err := decode(line)
		if err != nil {
			return answer, err
		}
		if answer, err = client.Chat(ctx, request); err != nil {
			return answer, err
		}
		return answer, encode(out, answer)
	}
	for r, err := range batch.Stream(context.Background(), j.items(&fault), call, j.options()...) {
		if err = errors.Join(err, r.Err); err != nil {
			return err
		}
	}
	return errors.Join(fault, out.Close())
}
