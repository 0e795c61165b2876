package google

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/rawjson"
)

// Scope is the scope of the tokens: Vertex has no scope of its own.
const Scope = "https://www.googleapis.com/auth/cloud-platform"

// name begins every error of this package.
const name = "google"

// Found are default credentials.
type Found struct {
	Tokens       *auth.Tokens
	Project      string // that they belong to; "" if they do not say
	QuotaProject string // to which calls are counted, as in X-Goog-User-Project; "" if they do not say
}

// Find finds the default credentials, and makes a source of their tokens. It reads files. If
// there is none, it asks the machine, within a few seconds, whether it is one of Google's. It
// fetches no token. An error is a *provider.Error of kind Misconfigured.
//
// Credentials are found anew for each token: a changed file takes effect, and a refused token is
// not given out again.
//
// cfg says which authorities are trusted where tokens are fetched; nil: the system's.
func Find(ctx context.Context, cfg *tls.Config) (Found, error) {
	found, err := find(ctx)
	if err != nil {
		return Found{}, &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{Fetch: func(ctx context.Context) (auth.Token, error) { return fetch(ctx, cfg) }})
	counted := rawjson.AppendText(nil, rawjson.Lookup(rawjson.Trim(found.JSON), "quota_project_id"))
	return Found{Tokens: tokens, Project: found.ProjectID, QuotaProject: string(counted)}, err
}

func find(ctx context.Context) (*google.Credentials, error) {
	found, err := google.FindDefaultCredentials(ctx, Scope)
	if err != nil {
		return nil, fmt.Errorf("default credentials: %w", err)
	}
	if found.JSON != nil && rawjson.Lookup(rawjson.Trim(found.JSON), "type") == nil {
		return nil, errors.New("default credentials: the file is of an application, which asks a person each time: " +
			"a service account's is needed, or gcloud auth application-default login")
	}
	return found, nil
}

// fetch fetches one token. It keeps no connections: the next token is due in an hour.
func fetch(ctx context.Context, cfg *tls.Config) (auth.Token, error) {
	transport := provider.NewHTTPTransport(1)
	transport.TLSClientConfig = cfg.Clone()
	defer transport.CloseIdleConnections()
	w := &witness{ctx: ctx, base: transport}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: w})
	found, err := find(ctx)
	if err != nil {
		return auth.Token{}, w.explain(err)
	}
	token, err := found.TokenSource.Token()
	if err != nil {
		return auth.Token{}, w.explain(err)
	}
	return auth.Token{Value: token.AccessToken, Expires: token.Expiry}, nil
}
