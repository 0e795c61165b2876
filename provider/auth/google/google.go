package google

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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

// Find finds the default credentials, and makes a source of their tokens. It reads files. Without
// such a file it asks the machine, within a few seconds, whether it is one of Google's. Find
// fetches no token. An error is a *provider.Error of kind Misconfigured.
//
// Credentials are found anew for each token: a changed file takes effect, and a refused token is
// not given out again.
//
// cfg says which authorities are trusted where tokens are fetched; nil: the system's.
func Find(ctx context.Context, cfg *tls.Config) (Found, error) {
	found, err := findCredentials(ctx)
	if err != nil {
		return Found{}, &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{
		Fetch: func(ctx context.Context) (auth.Token, error) { return fetch(ctx, cfg) },
	})
	quotaProject := rawjson.AppendText(nil, rawjson.Lookup(rawjson.Trim(found.JSON), "quota_project_id"))
	return Found{Tokens: tokens, Project: found.ProjectID, QuotaProject: string(quotaProject)}, err
}

// findCredentials finds the default credentials. It refuses those of an application, which ask a
// person each time.
func findCredentials(ctx context.Context) (*google.Credentials, error) {
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
	w := &failureRecorder{ctx: ctx, base: transport}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: w})
	found, err := findCredentials(ctx)
	if err != nil {
		return auth.Token{}, w.explain(err)
	}
	token, err := found.TokenSource.Token()
	if err != nil {
		return auth.Token{}, w.explain(err)
	}
	return auth.Token{Value: token.AccessToken, Expires: token.Expiry}, nil
}

// failureRecorder observes the requests for tokens. It keeps the latest failed answer, or why there was
// no answer, which the errors of x/oauth2 tell in prose only. It also keeps the secrets that
// were sent, which those errors may quote. It sends each request with the refresh's own context,
// as some come without one.
type failureRecorder struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one refresh
	base    http.RoundTripper
	secrets []string

	err    error
	status int // 0: no answer has failed
	header http.Header
	body   []byte
}

// secretFields are those of a request for a token, by RFC 6749, 7523 and 8693.
var secretFields = [...]string{"assertion", "client_assertion", "client_secret", "refresh_token", "subject_token", "code"}

// maxRequest bounds the part that is read of a request for a token, in bytes.
const maxRequest = 1 << 20

// RoundTrip sends a request, and keeps how it failed for explain. Each request forgets the failure
// of the one before. The body of a failed answer can still be read, up to MaxErrorBody.
func (w *failureRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	w.hideSecrets(r)
	w.err, w.status = nil, 0
	resp, err := w.base.RoundTrip(r.WithContext(w.ctx))
	if err != nil {
		w.err = err
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, provider.MaxErrorBody)) // the part that has come is enough
	_ = resp.Body.Close()
	w.status, w.header, w.body = resp.StatusCode, resp.Header, body
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// hideSecrets remembers the secrets in the header and the form of a request: explain takes them out.
func (w *failureRecorder) hideSecrets(r *http.Request) {
	if _, key, found := strings.Cut(r.Header.Get("Authorization"), " "); found {
		w.secrets = append(w.secrets, key)
	}
	if r.GetBody == nil {
		return
	}
	copied, err := r.GetBody()
	if err != nil {
		return
	}
	text, _ := io.ReadAll(io.LimitReader(copied, maxRequest)) // it is in memory
	_ = copied.Close()
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return
	}
	for _, field := range secretFields {
		for _, secret := range form[field] {
			w.secrets = append(w.secrets, secret, url.QueryEscape(secret))
		}
	}
}

// explain turns an error of x/oauth2 into a fault of the way, of the server, or a refusal, in
// the server's words and without any secret. Any other error is of kind Unknown, and for
// [auth.Tokens] a refusal.
func (w *failureRecorder) explain(err error) error {
	switch {
	case w.err != nil:
		err = w.err
	case w.status != 0:
		err = w.refusal()
	}
	e := provider.ClassifyErr(err).Without(w.secrets...)
	e.Provider = name
	return e
}

// refusal returns the error for an answer without a token. A fault of the request counts as a fault
// of the credentials from which it was made.
func (w *failureRecorder) refusal() *provider.Error {
	e := provider.Classify(w.status, w.header, w.body)
	if w.status/100 == 4 && w.status != http.StatusRequestTimeout && w.status != http.StatusTooManyRequests {
		e.Kind = provider.Unauthorized
	}
	var answer struct { // RFC 6749, 5.2
		Error       string
		Description string `json:"error_description"`
	}
	if json.Unmarshal(w.body, &answer) == nil && answer.Error != "" {
		e.Code, e.Message = answer.Error, cmp.Or(answer.Description, e.Message)
	}
	return e
}
