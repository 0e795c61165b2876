package google

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/headrace/headrace/provider"
)

// witness observes the requests for tokens. It keeps the latest failed answer, or why there was
// no answer, which the errors of x/oauth2 tell in prose only. It also keeps the secrets that
// were sent, which those errors may quote. It sends each request with the refresh's own context,
// as some come without one.
type witness struct {
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

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	w.hide(r)
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

// hide remembers the secrets of a request.
func (w *witness) hide(r *http.Request) {
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
func (w *witness) explain(err error) error {
	switch {
	case w.err != nil:
		return w.quiet(provider.ClassifyErr(w.err))
	case w.status != 0:
		return w.quiet(w.refusal())
	}
	return w.quiet(provider.ClassifyErr(err))
}

// refusal turns an answer without a token into an error. A fault of the request is a fault of the
// credentials that it was made of.
func (w *witness) refusal() *provider.Error {
	e := provider.Classify(w.status, w.header, w.body)
	if w.status/100 == 4 && w.status != http.StatusRequestTimeout && w.status != http.StatusTooManyRequests {
		e.Kind = provider.Unauthorized
	}
	var told struct { // RFC 6749, 5.2
		Error       string
		Description string `json:"error_description"`
	}
	if json.Unmarshal(w.body, &told) == nil && told.Error != "" {
		e.Code, e.Message = told.Error, cmp.Or(told.Description, e.Message)
	}
	return e
}

func (w *witness) quiet(e *provider.Error) error {
	own := *e
	own.Provider = name
	for _, text := range []*string{&own.Message, &own.Code, &own.Type, &own.Param} {
		*text = provider.RedactText(*text, w.secrets...)
	}
	own.Body = provider.Redact(own.Body, w.secrets...)
	if own.Err != nil {
		if text := own.Err.Error(); provider.RedactText(text, w.secrets...) != text {
			own.Err = errors.New(provider.RedactText(text, w.secrets...))
		}
	}
	return &own
}
