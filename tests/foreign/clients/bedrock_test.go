package clients

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go/auth/bearer"
)

// Ids of models have a colon in them, which stands in the path.
const bedrockModel = "anthropic.claude-haiku-4-5-20251001-v1:0"

// bedrocks are the two ways to prove who asks.
var bedrocks = map[string]func(*bedrockruntime.Options){
	"signed": func(o *bedrockruntime.Options) {
		o.Credentials = aws.CredentialsProviderFunc(credentials)
	},
	"bearer key": func(o *bedrockruntime.Options) {
		o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: apiKey}}
		o.AuthSchemePreference = []string{"httpBearerAuth"}
		o.BaseEndpoint = aws.String("https" + strings.TrimPrefix(*o.BaseEndpoint, "http")) // else it is not sent
		client := o.HTTPClient.(*http.Client)
		client.Transport = plain{client.Transport}
	},
}

// plain leaves out the encryption, which the simulated provider has not.
type plain struct{ http.RoundTripper }

func (p plain) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return p.RoundTripper.RoundTrip(r)
}

func TestBedrock(t *testing.T) {
	for way := range bedrocks {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			got, err := askBedrock(t, bedrockAt(t, way, startSim(t, "converse")))
			if err != nil {
				t.Fatal(err)
			}
			message := got.Output.(*types.ConverseOutputMemberMessage).Value
			says(t, message.Content[0].(*types.ContentBlockMemberText).Value)
			if got.StopReason != types.StopReasonEndTurn || message.Role != types.ConversationRoleAssistant || got.Metrics == nil {
				t.Errorf("stop %q, role %q, metrics %v", got.StopReason, message.Role, got.Metrics)
			}
			if u := got.Usage; *u.InputTokens == 0 || *u.OutputTokens == 0 || *u.TotalTokens != *u.InputTokens+*u.OutputTokens {
				t.Errorf("usage %d + %d = %d", *u.InputTokens, *u.OutputTokens, *u.TotalTokens)
			}
		})
	}
}

func TestBedrockRefused(t *testing.T) {
	t.Parallel()
	c := bedrockAt(t, "bearer key", startSim(t, "converse", limited...))
	if _, err := askBedrock(t, c); err != nil {
		t.Fatal(err)
	}
	_, err := askBedrock(t, c)
	var e *types.ThrottlingException
	if !errors.As(err, &e) {
		t.Fatalf("not its error: %v", err)
	}
	if e.ErrorMessage() == "" {
		t.Error("no message")
	}
	answered(t, err, http.StatusTooManyRequests)
}

func TestBedrockOverloaded(t *testing.T) {
	t.Parallel()
	_, err := askBedrock(t, bedrockAt(t, "bearer key", startSim(t, "converse", overloaded...)))
	var e *types.ServiceUnavailableException
	if !errors.As(err, &e) {
		t.Fatalf("not its error: %v", err)
	}
	answered(t, err, http.StatusServiceUnavailable)
}

func bedrockAt(t *testing.T, way, url string) *bedrockruntime.Client {
	t.Helper()
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url), HTTPClient: httpClient(t), Retryer: aws.NopRetryer{},
	}, bedrocks[way])
}

func askBedrock(t *testing.T, c *bedrockruntime.Client) (*bedrockruntime.ConverseOutput, error) {
	t.Helper()
	return c.Converse(t.Context(), &bedrockruntime.ConverseInput{
		ModelId: aws.String(bedrockModel),
		System:  []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "Be brief."}},
		Messages: []types.Message{{
			Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}},
		}},
		InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(bound)},
	})
}

// answered checks the status, and that the answer can be named to the provider.
func answered(t *testing.T, err error, status int) {
	t.Helper()
	var e *awshttp.ResponseError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.HTTPStatusCode() != status || e.RequestID == "" {
		t.Errorf("status %d, request %q", e.HTTPStatusCode(), e.RequestID)
	}
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "not-a-secret"}, nil
}
