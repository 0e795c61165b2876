package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// litellmHeaders are those of litellm's requests, written down from its source: nothing of PyPI can be had here.
// To OpenAI's paths it calls by openai-python, and to Anthropic's by a client of its own, which asks for JSON
// also where it wants a stream.
var litellmHeaders = map[string]map[string]string{
	"openai": {
		"Accept": "application/json", "Accept-Encoding": "gzip, deflate", "Authorization": "Bearer key-of-a-test", "User-Agent": "OpenAI/Python 2.8.0",
		"X-Stainless-Lang": "python", "X-Stainless-Package-Version": "2.8.0", "X-Stainless-OS": "Linux", "X-Stainless-Arch": "x64",
		"X-Stainless-Runtime": "CPython", "X-Stainless-Runtime-Version": "3.12.3", "X-Stainless-Async": "false",
		"X-Stainless-Raw-Response": "true", "X-Stainless-Retry-Count": "0", "X-Stainless-Read-Timeout": "600.0",
	},
	"anthropic": {
		"Accept": "application/json", "Accept-Encoding": "gzip, deflate", "X-Api-Key": "key-of-a-test", "User-Agent": "litellm/1.80.0",
		"Anthropic-Version": "2023-06-01",
	},
}

// asLitellm asks with a request as litellm sends it, and reads the answer as its parser does.
func asLitellm(dialect string) func(t *testing.T, url string, stream bool) (reading, error) {
	path := map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[dialect]
	return func(t *testing.T, url string, stream bool) (reading, error) {
		t.Helper()
		body := map[string]any{"model": simModel, "messages": []any{map[string]any{"role": "user", "content": question}}, "max_tokens": 64}
		if stream {
			body["stream"] = true
			if dialect == "openai" {
				body["stream_options"] = map[string]any{"include_usage": true}
			}
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for name, value := range litellmHeaders[dialect] {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return reading{}, err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			words, _ := io.ReadAll(resp.Body)
			return reading{}, nodeError{Status: resp.StatusCode, Message: string(words)}
		}
		if !stream {
			var a litellmPiece
			err = json.NewDecoder(resp.Body).Decode(&a)
			var got reading
			a.takeInto(&got)
			return got, err
		}
		return litellmStream(resp.Body)
	}
}

// litellmPiece is an answer or a piece of one, in either dialect.
type litellmPiece struct {
	Model   string
	Type    string
	Error   json.RawMessage
	Choices []struct {
		Message, Delta struct{ Content string }
		End            string `json:"finish_reason"`
	}
	Content []struct{ Text string }
	Message struct {
		Model string
		Usage litellmUsage
	}
	Delta struct {
		Text string
		End  string `json:"stop_reason"`
	}
	End   string `json:"stop_reason"`
	Usage litellmUsage
}

type litellmUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// takeInto adds the piece to what was read.
func (p *litellmPiece) takeInto(to *reading) {
	for _, c := range p.Choices {
		to.Text += c.Message.Content + c.Delta.Content
		to.End += c.End
	}
	for _, c := range p.Content {
		to.Text += c.Text
	}
	to.Text += p.Delta.Text
	to.End += p.End + p.Delta.End
	for _, model := range []string{p.Model, p.Message.Model} {
		if model != "" {
			to.Model = model
		}
	}
	for _, u := range []litellmUsage{p.Usage, p.Message.Usage} {
		to.Read = max(to.Read, u.Prompt, u.Input)
		to.Written = max(to.Written, u.Completion, u.Output)
	}
}

// litellmStream reads the lines that begin with data, and no others: so litellm does, by hand.
func litellmStream(from io.Reader) (got reading, err error) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data:")
		switch data = strings.TrimSpace(data); {
		case !is:
			continue
		case data == "[DONE]":
			return got, nil
		}
		var p litellmPiece
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			return got, err
		}
		if p.Error != nil {
			return got, fmt.Errorf("within the stream: %s", p.Error)
		}
		if p.takeInto(&got); p.Type == "message_stop" {
			return got, nil
		}
	}
	return got, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}
