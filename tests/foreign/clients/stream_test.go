package clients

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/headrace/headrace/tests/foreign/part"
)

// reading is an answer as a client has read it.
type reading struct {
	Text, End, Model string
	Read, Written    int64 // tokens
}

// judges read the same answer whole and as a stream.
var judges = map[string]struct {
	sim string // the dialect
	ask func(t *testing.T, url string, stream bool) (reading, error)
}{
	"openai-go, chat": {"openai", func(t *testing.T, url string, stream bool) (reading, error) {
		return judgeChat(t, "openai", url, stream)
	}},
	"openai-go, chat at azure": {"azure", func(t *testing.T, url string, stream bool) (reading, error) {
		return judgeChat(t, "azure deployments", url, stream)
	}},
	"openai-go, responses": {"openai", judgeResponses},
	"anthropic-sdk-go":     {"anthropic", judgeMessages},
	"genai, AI Studio": {"gemini", func(t *testing.T, url string, stream bool) (reading, error) {
		return judgeGemini(t, "AI Studio", url, stream)
	}},
	"genai, Vertex": {"gemini", func(t *testing.T, url string, stream bool) (reading, error) {
		return judgeGemini(t, "Vertex", url, stream)
	}},
	"bedrockruntime":             {"converse", judgeConverse},
	"openai for node, chat":      {"openai", inNode("chat")},
	"openai for node, responses": {"openai", inNode("responses")},
	"anthropic for node":         {"anthropic", inNode("messages")},
	"genai for node":             {"gemini", inNode("gemini")},
	"as litellm, chat":           {"openai", asLitellm("openai")},
	"as litellm, messages":       {"anthropic", asLitellm("anthropic")},
	"langchain, ChatOpenAI":      {"openai", inNode("ChatOpenAI")},
	"langchain, ChatAnthropic":   {"anthropic", inNode("ChatAnthropic")},
}

// dribble lets the pieces of a stream come one by one. An answer that begins at once was sometimes lost
// by AWS's client, whose connection was closed on its side.
var dribble = []string{"--latency", "300ms"}

// Each client reads the same of a stream as of the plain answer, its usage included.
func TestStreams(t *testing.T) {
	for name, judge := range judges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := startSim(t, judge.sim, dribble...)
			plain, err := judge.ask(t, url, false)
			if err != nil {
				t.Fatal(err)
			}
			streamed, err := judge.ask(t, url, true)
			if err != nil {
				t.Fatal(err)
			}
			says(t, streamed.Text)
			if streamed != plain || plain.End == "" || plain.Model == "" || plain.Read == 0 || plain.Written == 0 {
				t.Errorf("as a stream %+v, and plain %+v", streamed, plain)
			}
		})
	}
}

// Before the first byte a stream fails with the status of a plain answer, which each client reads.
func TestStreamsRefused(t *testing.T) {
	for name, judge := range judges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := startSim(t, judge.sim, limited...)
			if _, err := judge.ask(t, url, false); err != nil {
				t.Fatal(err)
			}
			if got, err := judge.ask(t, url, true); statusOf(err) != http.StatusTooManyRequests {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// An error within a stream, and a stream that is cut, are errors to each client. AWS's says nothing
// of a connection that breaks between two frames: the end is missing then.
func TestStreamsBroken(t *testing.T) {
	for name, judge := range judges {
		for kind, says := range map[string]string{"stream-error": inStream[judge.sim], "truncated": ""} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				got, err := judge.ask(t, startSim(t, judge.sim, append(dribble, "--errors", kind+"=1")...), true)
				silent := judge.sim == "converse" && kind == "truncated" && got.End == ""
				if err == nil && !silent || err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
}

// inStream are words of an error within a stream, which the error of a client must have.
var inStream = map[string]string{
	"openai": "The server had an error", "azure": "The server had an error", "anthropic": "overloaded_error", "gemini": "overloaded", "converse": "ModelStreamErrorException",
}

// statusOf is the status in any client's error.
func statusOf(err error) int {
	var (
		o *openai.Error
		a *anthropic.Error
		g genai.APIError
		b *awshttp.ResponseError
		n nodeError
	)
	switch {
	case errors.As(err, &o):
		return o.StatusCode
	case errors.As(err, &a):
		return a.StatusCode
	case errors.As(err, &g):
		return g.Code
	case errors.As(err, &b):
		return b.HTTPStatusCode()
	case errors.As(err, &n):
		return n.Status
	}
	return 0
}

func judgeChat(t *testing.T, address, url string, stream bool) (reading, error) {
	c, ask := openAI(t, address, url), openAIChat()
	if !stream {
		a, err := c.Chat.Completions.New(t.Context(), ask)
		if err != nil {
			return reading{}, err
		}
		return chatReading(*a), nil
	}
	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks := c.Chat.Completions.NewStreaming(t.Context(), ask)
	defer chunks.Close()
	var all openai.ChatCompletionAccumulator
	for chunks.Next() {
		if !all.AddChunk(chunks.Current()) {
			t.Errorf("a chunk does not fit: %s", chunks.Current().RawJSON())
		}
	}
	if err := chunks.Err(); err != nil {
		return reading{}, err
	}
	if text, finished := all.JustFinishedContent(); finished {
		t.Errorf("the content ends with the last chunk: %q", text)
	}
	return chatReading(all.ChatCompletion), nil
}

func chatReading(a openai.ChatCompletion) reading {
	return reading{a.Choices[0].Message.Content, a.Choices[0].FinishReason, a.Model, a.Usage.PromptTokens, a.Usage.CompletionTokens}
}

func judgeResponses(t *testing.T, url string, stream bool) (reading, error) {
	c, ask := openAI(t, "openai", url), responses.ResponseNewParams{
		Model: simModel, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
	}
	if !stream {
		a, err := c.Responses.New(t.Context(), ask)
		if err != nil {
			return reading{}, err
		}
		return responseReading(*a), nil
	}
	events := c.Responses.NewStreaming(t.Context(), ask)
	defer events.Close()
	var (
		text string
		last responses.Response
	)
	for serial := int64(0); events.Next(); serial++ {
		switch e := events.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseTextDoneEvent:
			if e.Text != text {
				t.Errorf("%q, and in deltas %q", e.Text, text)
			}
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
		if n := events.Current().SequenceNumber; n != serial {
			t.Errorf("event %d has the number %d", serial, n)
		}
	}
	if err := events.Err(); err != nil {
		return reading{}, err
	}
	if last.OutputText() != text {
		t.Errorf("%q, and in deltas %q", last.OutputText(), text)
	}
	return responseReading(last), nil
}

func responseReading(a responses.Response) reading {
	return reading{a.OutputText(), string(a.Status), a.Model, a.Usage.InputTokens, a.Usage.OutputTokens}
}

func judgeMessages(t *testing.T, url string, stream bool) (reading, error) {
	c := anthropicAt(t, url)
	if !stream {
		a, err := askAnthropic(t, c)
		if err != nil {
			return reading{}, err
		}
		return messageReading(*a), nil
	}
	events := c.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: simModel, MaxTokens: bound, Messages: anthropicTurns(), System: []anthropic.TextBlockParam{{Text: "Be brief."}},
	})
	defer events.Close()
	var all anthropic.Message
	for events.Next() {
		if err := all.Accumulate(events.Current()); err != nil {
			t.Error(err)
		}
	}
	if err := events.Err(); err != nil {
		return reading{}, err
	}
	return messageReading(all), nil
}

func messageReading(a anthropic.Message) reading {
	return reading{a.Content[0].Text, string(a.StopReason), a.Model, a.Usage.InputTokens, a.Usage.OutputTokens}
}

func judgeGemini(t *testing.T, address, url string, stream bool) (all reading, err error) {
	c := geminiAt(t, address, url)
	if !stream {
		a, err := askGemini(t, c)
		if err != nil {
			return all, err
		}
		return geminiReading(*a), nil
	}
	for chunk, err := range c.Models.GenerateContentStream(t.Context(), simModel, genai.Text(question), &genai.GenerateContentConfig{
		MaxOutputTokens: bound, SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser),
	}) {
		if err != nil {
			return reading{}, err
		}
		before := all.Text
		all = geminiReading(*chunk)
		all.Text = before + all.Text
	}
	return all, nil
}

func geminiReading(a genai.GenerateContentResponse) reading {
	return reading{a.Text(), string(a.Candidates[0].FinishReason), a.ModelVersion, int64(a.UsageMetadata.PromptTokenCount), int64(a.UsageMetadata.CandidatesTokenCount)}
}

func judgeConverse(t *testing.T, url string, stream bool) (all reading, err error) {
	c := bedrockAt(t, "bearer key", url)
	all.Model = bedrockModel // which no answer names
	if !stream {
		a, err := askBedrock(t, c)
		if err != nil {
			return all, err
		}
		message := a.Output.(*types.ConverseOutputMemberMessage).Value
		all.Text, all.End = message.Content[0].(*types.ContentBlockMemberText).Value, string(a.StopReason)
		all.Read, all.Written = int64(*a.Usage.InputTokens), int64(*a.Usage.OutputTokens)
		return all, nil
	}
	a, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{
		ModelId: aws.String(bedrockModel),
		System:  []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "Be brief."}},
		Messages: []types.Message{{
			Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}},
		}},
		InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(bound)},
	})
	if err != nil {
		return all, err
	}
	events := a.GetStream()
	defer events.Close()
	for e := range events.Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			all.Text += e.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
		case *types.ConverseStreamOutputMemberMessageStop:
			all.End = string(e.Value.StopReason)
		case *types.ConverseStreamOutputMemberMetadata:
			all.Read, all.Written = int64(*e.Value.Usage.InputTokens), int64(*e.Value.Usage.OutputTokens)
		}
	}
	return all, events.Err()
}

// nodeError is an error that a client for node has thrown.
type nodeError struct {
	Message string `json:"error"`
	Status  int
}

func (e nodeError) Error() string { return e.Message }

// inNode asks with an official client for node.
func inNode(dialect string) func(t *testing.T, url string, stream bool) (reading, error) {
	return func(t *testing.T, url string, stream bool) (reading, error) {
		way := "whole"
		if stream {
			way = "stream"
		}
		out, err := part.Node(t, "streams.mjs", dialect, url, simModel, question, way).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got struct {
			reading
			nodeError
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got.Message != "" {
			return reading{}, got.nodeError
		}
		return got.reading, nil
	}
}
