package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// pooled returns a client that keeps a connection for each call in flight, which the default
// client does not. Without it neither loop would be worth beating.
func pooled(inFlight int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: inFlight, MaxIdleConnsPerHost: inFlight}}
}

// bare does the least possible: each worker takes a line, posts its bytes and appends the
// answer's.
func bare(j job) error {
	out, err := j.create()
	if err != nil {
		return err
	}
	client, lines := pooled(j.inFlight), make(chan []byte)
	var g errgroup.Group
	for range j.inFlight {
		g.Go(func() error {
			for line := range lines {
				if err := post(client, j.url, line, out); err != nil {
					return err
				}
			}
			return nil
		})
	}
	fault := j.lines(func(line []byte) bool { lines <- line; return true })
	close(lines)
	return errors.Join(fault, g.Wait(), out.Close())
}

// post sends a line and appends the body of the answer, as a line. All workers write to one file,
// so each line is one write.
func post(client *http.Client, url string, line []byte, out io.Writer) error {
	resp, err := client.Post(url+chatPath, "application/json", bytes.NewReader(line))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = out.Write(append(body, '\n'))
	return err
}

// naive is the program that most people write first: a goroutine for each prompt, a limiter
// in front of the call (here one that never says wait), structs in and out.
func naive(j job) error {
	out, err := j.create()
	if err != nil {
		return err
	}
	client := structs(j)
	limiter := rate.NewLimiter(rate.Inf, 1)
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(j.inFlight)
	fault := j.lines(func(line []byte) bool {
		g.Go(func() error {
			if err := limiter.Wait(ctx); err != nil {
				return err
			}
			request, err := decode(line)
			if err != nil {
				return err
			}
			answer, err := client.CreateChatCompletion(ctx, request)
			if err != nil {
				return err
			}
			return encode(out, answer)
		})
		return true
	})
	return errors.Join(fault, g.Wait(), out.Close())
}

func structs(j job) *openai.Client {
	cfg := openai.DefaultConfig("no-key")
	cfg.BaseURL, cfg.HTTPClient = j.url+"/v1", pooled(j.inFlight)
	return openai.NewClientWithConfig(cfg)
}

func decode(line []byte) (openai.ChatCompletionRequest, error) {
	var request openai.ChatCompletionRequest
	err := json.Unmarshal(line, &request)
	return request, err
}

func encode(out *os.File, answer openai.ChatCompletionResponse) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = out.Write(append(body, '\n'))
	return err
}
