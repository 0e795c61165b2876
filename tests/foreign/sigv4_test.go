package foreign

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/wire"
	"github.com/headrace/headrace/tests/foreign/part"
)

const (
	signatures = 1000
	region     = "eu-central-1"
)

var credentials = sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "not-a-secret"}

// What our client signs for Bedrock is accepted by the signers of two other hands, whatever
// the model, the body and the credentials; with one thing changed on the way neither does.
func TestSignaturesAreAccepted(t *testing.T) {
	url := part.Serve(t, part.Node(t, "checkers.mjs", region, sigv4.Bedrock, credentials.AccessKeyID, credentials.SecretAccessKey), "listening on ")
	rng := rand.New(rand.NewPCG(4, 4)) //nolint:gosec // requests are no secret
	for _, token := range []string{"", "token/of+a=session"} {
		tamper := &tamperer{base: http.DefaultTransport.(*http.Transport).Clone()} //nolint:forcetypeassert // it is one
		t.Cleanup(tamper.base.CloseIdleConnections)
		c := signing(t, url, token, tamper)
		for i := range signatures / 2 {
			r := randomConverse(rng)
			tamper.with = nil
			if _, err := c.Do(t.Context(), r); err != nil {
				t.Fatalf("%s: %v", r.Model, err)
			}
			if i%10 != 0 {
				continue
			}
			for what, with := range tampers {
				if strings.Contains(what, "token") && token == "" {
					continue
				}
				tamper.with = with
				refusedByBoth(t, c, r, what)
			}
		}
	}
}

// And so is any other request that somebody signs by the source: of any method, with a query,
// and a path in which characters stand that AWS escapes and Go does not.
func TestSignaturesOfOthersAreAccepted(t *testing.T) {
	url := part.Serve(t, part.Node(t, "checkers.mjs", region, sigv4.Bedrock, credentials.AccessKeyID, credentials.SecretAccessKey), "listening on ")
	source, err := sigv4.New(credentials, region, sigv4.Bedrock)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	rng := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // requests are no secret
	for range signatures / 5 {
		body := fmt.Sprint(rng.Uint64())
		method := []string{http.MethodPost, http.MethodPut, http.MethodPatch}[rng.IntN(3)]
		path := fmt.Sprintf("/model/eu.amazon:nova@%d=$&+,;(x)'!*/v%d%%3Ab~/converse?b=%d&a=x%%20y", rng.IntN(100), rng.IntN(3), rng.IntN(9))
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json") // else aws4 puts one there
		if err := source.Apply(t.Context(), r, []byte(body)); err != nil {
			t.Fatal(err)
		}
		accepted(t, transport, r)
	}
}

func accepted(t *testing.T, over http.RoundTripper, r *http.Request) {
	t.Helper()
	answer, err := over.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d: %s", r.Method, r.URL, answer.StatusCode, said)
	}
}

// tampers are changes that somebody makes on the way.
var tampers = map[string]func(*http.Request){
	"content type":  func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") },
	"session token": func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "another") },
	"date": func(r *http.Request) {
		r.Header.Set("X-Amz-Date", r.Header.Get("X-Amz-Date")[:8]+"T000000Z")
	},
	"host": func(r *http.Request) { r.Host = "localhost" },
	"another header of Amazon's": func(r *http.Request) {
		r.Header.Set("X-Amzn-Bedrock-Trace", "ENABLED")
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "SignedHeaders=", "SignedHeaders=x-amzn-bedrock-trace;", 1))
	},
	"path": func(r *http.Request) {
		r.URL.Path += "-stream"
		r.URL.RawPath += "-stream"
	},
	"signature": func(r *http.Request) {
		last := map[bool]string{true: "1", false: "0"}[strings.HasSuffix(r.Header.Get("Authorization"), "0")]
		signed := r.Header.Get("Authorization")
		r.Header.Set("Authorization", signed[:len(signed)-1]+last)
	},
}

// tamperer changes what passes.
type tamperer struct {
	base *http.Transport
	with func(*http.Request)
}

func (t *tamperer) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.with != nil {
		r = r.Clone(r.Context())
		t.with(r)
	}
	return t.base.RoundTrip(r)
}

func signing(t *testing.T, url, token string, over http.RoundTripper) *wire.Client {
	t.Helper()
	with := credentials
	with.SessionToken = token
	source, err := sigv4.New(with, region, sigv4.Bedrock)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.New(wire.Config{Dialect: converse.Dialect{}, Auth: source, BaseURL: url, Transport: over})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// randomConverse is a request to a model whose id has in it what ids have: an ARN with its
// colons and slashes, a version, or anything that has to be escaped.
func randomConverse(rng *rand.Rand) provider.Request {
	id := fmt.Sprintf("anthropic.claude-%d-v%d:%d", rng.IntN(100), rng.IntN(3), rng.IntN(3))
	switch rng.IntN(3) {
	case 0:
		id = fmt.Sprintf("arn:aws:bedrock:%s:%012d:application-inference-profile/%x", region, rng.IntN(1e9), rng.Uint64())
	case 1:
		letters := []rune("abcXYZ019.:/-_~+ @%&=?#'()*!é日😀")
		for range rng.IntN(12) {
			id += string(letters[rng.IntN(len(letters))])
		}
	}
	text := strings.Repeat("é\\n", rng.IntN(200))
	return provider.Request{
		Endpoint: provider.Converse, Model: id,
		Body: fmt.Appendf(nil, `{"messages":[{"role":"user","content":[{"text":"%x%s"}]}]}`, rng.Uint64(), text),
	}
}

func refusedByBoth(t *testing.T, c *wire.Client, r provider.Request, what string) {
	t.Helper()
	_, err := c.Do(t.Context(), r)
	if !errors.Is(err, provider.Unauthorized) || !strings.Contains(err.Error(), "aws4") || !strings.Contains(err.Error(), "@smithy") {
		t.Errorf("with another %s: %v", what, err)
	}
}
