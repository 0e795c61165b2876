package providertest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is the shortest client that keeps the promises.
type plain struct {
	base string
	http *http.Client
}

func (p plain) CloseIdle() { p.http.CloseIdleConnections() }

func (p plain) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	const maxBody = 1 << 20
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+r.Endpoint, bytes.NewReader(r.Body))
	if err != nil {
		return provider.Reply{}, provider.ClassifyErr(err)
	}
	req.Header.Set("Authorization", "Bearer "+providertest.Key)
	resp, err := p.http.Do(req)
	if err != nil {
		return provider.Reply{}, p.classify(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return provider.Reply{}, &provider.Error{Kind: provider.TransportFault, Status: resp.StatusCode, Err: err}
	}
	if len(body) == maxBody && resp.StatusCode == http.StatusOK {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: resp.StatusCode}
	}
	quiet := provider.Redact(body[:min(len(body), provider.MaxErrorBody)], providertest.Key)
	if e := provider.Classify(resp.StatusCode, resp.Header, quiet); e != nil {
		e.RequestID = string(provider.Redact([]byte(e.RequestID), providertest.Key))
		return provider.Reply{}, e
	}
	reply, e := provider.ReplyOf(resp.StatusCode, resp.Header, provider.Redact(body, providertest.Key))
	if e != nil {
		return provider.Reply{}, e
	}
	rec := provider.RecorderFrom(ctx)
	if reply.HasUsage {
		rec.Usage(reply.Usage)
	}
	rec.Finish(reply.Finish)
	reply.RequestID = provider.RedactText(reply.RequestID, providertest.Key)
	return reply, nil
}

func (p plain) classify(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		if e := provider.ClassifyErr(cause); e.Kind != provider.Unknown {
			return e
		}
		return &provider.Error{Kind: provider.Canceled, Err: cause}
	}
	return provider.ClassifyErr(err)
}

// The suite can be passed by a client that shares no code with provider/openai.
func TestSuiteCanBePassed(t *testing.T) {
	providertest.Run(t, func(baseURL string) providertest.Doer {
		return plain{baseURL, &http.Client{
			Transport:     &provider.Transport{Base: provider.NewHTTPTransport(2)},
			CheckRedirect: provider.RefuseForeignRedirect,
		}}
	})
}

// Every recording parses, has a name of its own, and a status if it is an answer.
func TestCasesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range providertest.Cases() {
		if seen[c.Name] || c.Whole && c.Status == 0 {
			t.Errorf("%s: twice, or whole without a status", c.Name)
		}
		seen[c.Name] = true
	}
	if len(seen) < 100 {
		t.Errorf("%d recordings", len(seen))
	}
}
