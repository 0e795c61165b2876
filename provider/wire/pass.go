package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/rawjson"
)

// Pass sends a request in the dialect's own words and returns the answer as it comes, unread. It is
// for programs that stand between a client and the provider. It is one try, as Do is, with the
// same vendor's address, proof of who calls and headers.
//
// streams asks for the path of streams; a dialect whose bodies ask for them has the same path for
// both. header holds the client's own headers: those of the configuration win, except the dialect's
// version. query is appended to the address. The caller has taken out of both what must not leave.
//
// The secrets of the configuration are in no answer: not in its headers, nor in its body, also if
// they come in pieces. Everything else is as the provider sent it, unpacked. An error is an *Error, or that
// of the transport.
func (c *Client) Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error) {
	body, err := c.bodyToPass(r)
	if err != nil {
		return nil, c.refused(err)
	}
	path, template, err := c.passPath(r, streams)
	if err != nil {
		return nil, c.refused(err)
	}
	return c.pass(ctx, header, body, func(ctx context.Context) (*http.Request, error) {
		req, err := c.requestTo(ctx, template, path, r.Model)
		if err != nil {
			return nil, err
		}
		req.URL.RawQuery = joinQueries(req.URL.RawQuery, query)
		if c.custom {
			loadTracked(req, body)
		} else {
			load(req, body)
		}
		return req, nil
	})
}

// List asks for the provider's list of models, like Pass. It returns an error of kind Invalid if the
// dialect has none.
func (c *Client) List(ctx context.Context, header http.Header) (*http.Response, error) {
	lists, has := c.dialect.(interface{ ModelsPath() string })
	if !has {
		return nil, c.refused(errors.New("the dialect " + c.dialect.Name() + " has no list of models"))
	}
	return c.pass(ctx, header, nil, func(ctx context.Context) (*http.Request, error) {
		req, err := c.requestTo(ctx, "{path}", lists.ModelsPath(), "")
		if err != nil {
			return nil, err
		}
		req.Method = http.MethodGet
		req.Header = req.Header.Clone()
		req.Header.Del("Content-Type")
		return req, nil
	})
}

// Dialect returns the configuration's.
func (c *Client) Dialect() provider.Dialect { return c.dialect }

// bodyToPass returns the body to send. That is the request's own, unless the vendor wants another
// member in place of the model or the lane has a tier of its own.
func (c *Client) bodyToPass(r provider.Request) ([]byte, error) {
	if len(r.Body) == 0 {
		return nil, errors.New("the request has no body")
	}
	body := r.Body
	if c.cfg.InBody != "" && rawjson.IsObject(rawjson.Trim(body)) {
		body = inPlaceOfModel(body, c.cfg.InBody)
	}
	if c.cfg.Tier != "" && asksForWords(r.Endpoint) && rawjson.IsObject(rawjson.Trim(body)) {
		body = withTier(body, c.cfg.Tier)
	}
	return body, nil
}

// passPath returns the dialect's path for an operation, or for its stream, and the vendor's form of
// paths.
func (c *Client) passPath(r provider.Request, streams bool) (path, template string, err error) {
	has := c.serves(&r)
	template = c.cfg.Path
	if streams {
		template = c.cfg.StreamPath
		streamer, can := c.dialect.(provider.Streamer)
		if has = has && can; has {
			path, has = streamer.StreamPath(r.Endpoint, r.Model)
		}
	} else if has {
		path, has = c.dialect.Path(r.Endpoint, r.Model)
	}
	if !has {
		return "", "", notServed(r.Endpoint, c.served)
	}
	return path, template, nil
}

// pass sends the request that build makes, and once more if its proof was refused and there is a fresher one.
func (c *Client) pass(ctx context.Context, header http.Header, body []byte, build func(context.Context) (*http.Request, error)) (*http.Response, error) {
	for isRetry := false; ; isRetry = true {
		sending := ctx
		if !c.custom { // with a custom transport the body tells what has left
			sending = watched(ctx)
		}
		req, err := build(sending)
		if err != nil {
			return nil, c.refused(err)
		}
		req.Header = c.headersOf(header)
		if err := c.cfg.Auth.Apply(ctx, req, body); err != nil {
			return nil, c.refused(err)
		}
		provider.RecorderFrom(ctx).Hide(c.cfg.Auth.Secrets()...) // the source may just have read a fresh one

		resp, err := c.send(req)
		if err == nil {
			err = unpack(resp)
		}
		switch {
		case err != nil:
			if !hasLeft(req) {
				provider.RecorderFrom(ctx).Unsent()
			}
			return nil, c.Quiet(err)
		case resp.StatusCode >= http.StatusBadRequest:
			if c.readFailure(req, resp) && !isRetry {
				continue
			}
		default:
			c.hideSecrets(resp)
		}
		return resp, nil
	}
}

// unpack undoes a compression of the answer that was not asked for. The client may be unable to, and
// secrets cannot be found in a compressed answer.
func unpack(resp *http.Response) error {
	switch coding := strings.ToLower(resp.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		resp.Body = &gunzip{ReadCloser: resp.Body}
	default:
		_ = resp.Body.Close() // nobody can read it
		return broken(errMalformed, fmt.Errorf("the answer is packed as %.40q: want gzip or nothing", coding))
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	return nil
}

// headersOf returns the headers of a request: those of the configuration, and the client's where
// there are none. The version of a dialect is that in which the client wrote its body.
func (c *Client) headersOf(client http.Header) http.Header {
	all := client.Clone()
	if all == nil {
		all = http.Header{}
	}
	var own http.Header
	if of, has := c.dialect.(interface{ Header() http.Header }); has {
		own = of.Header()
	}
	for name, values := range c.header {
		_, version := own[name]
		if _, has := all[name]; has && (version || name == "Accept" || name == "Content-Type") {
			continue
		}
		all[name] = slices.Clone(values)
	}
	return all
}

// readFailure reads a failed answer and takes the secrets out. It reports whether another try may
// succeed: the key was refused, and there is a fresher one.
func (c *Client) readFailure(req *http.Request, resp *http.Response) (again bool) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	_, _ = io.CopyN(io.Discard, resp.Body, drain)
	_ = resp.Body.Close() // what counts was read
	body = c.redact(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length") // a key that was taken out changes it
	c.hideInHeaders(resp.Header)
	if err != nil {
		return false
	}
	_, own := c.dialect.Answer(resp.StatusCode, resp.Header, body, c.cfg.Wording)
	if own == nil {
		return false
	}
	return c.mayRetry(&Exchange{req: req, Status: resp.StatusCode, Header: resp.Header}, own)
}

// maxFailure bounds what is passed on of a failed answer, in bytes: far more than any provider
// says.
const maxFailure = 1 << 20

// hideSecrets takes the secrets out of the headers of an answer, and of its body as that is read.
func (c *Client) hideSecrets(resp *http.Response) {
	c.hideInHeaders(resp.Header)
	var secrets [][]byte
	for _, s := range c.cfg.Auth.Secrets() {
		if len(s) >= minHidden && !auth.IsPlaceholder(s) {
			secrets = append(secrets, []byte(s))
		}
	}
	if len(secrets) > 0 && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body = &hiding{ReadCloser: resp.Body, secrets: secrets}
	}
}

// minHidden is the length from which a text is a secret: see provider.Redact.
const minHidden = 8

func (c *Client) hideInHeaders(h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = c.quietText(v)
		}
	}
}

// hiding is a body without secrets. It holds back the end of what came if a secret may begin there,
// until more comes. A secret is replaced by as many stars, so that no length changes.
type hiding struct {
	io.ReadCloser
	secrets [][]byte
	piece   []byte // what was read last
	full    bool   // it was, and may be longer
	sure    []byte // of piece: may be passed on
	held    []byte // of the end of piece: the beginning of a secret
	err     error  // comes after both
}

// longest returns the length of the longest secret.
func (h *hiding) longest() (n int) {
	for _, s := range h.secrets {
		n = max(n, len(s))
	}
	return n
}

// Read passes on the bytes that cannot be part of a secret. The size of p does not matter: a piece is
// longer than any secret.
func (h *hiding) Read(p []byte) (int, error) {
	for len(h.sure) == 0 && len(p) > 0 {
		if h.err != nil {
			return 0, h.err
		}
		if h.full || h.piece == nil {
			h.piece = make([]byte, min(max(2*len(h.piece), leastPiece), mostPiece)+2*h.longest())
		}
		n := copy(h.piece, h.held)
		more, err := h.ReadCloser.Read(h.piece[n:])
		data := h.piece[:n+more]
		h.full = len(data) == len(h.piece) && len(data) < mostPiece
		h.mask(data)
		keep := 0
		if h.err = err; err == nil {
			keep = h.partialSecret(data) // at the end of the body it is no secret
		}
		h.sure = data[:len(data)-keep]
		h.held = append(h.held[:0], data[len(data)-keep:]...)
	}
	n := copy(p, h.sure)
	h.sure = h.sure[n:]
	return n, nil
}

// Sizes in bytes of a piece of an answer, to which the room for two secrets is added. Each of thousands of open streams has
// one, so it is some events at first, and grows for a long answer that comes at once.
const (
	leastPiece = 2 << 10
	mostPiece  = 32 << 10
)

// mask replaces each secret in p by asterisks.
func (h *hiding) mask(p []byte) {
	for _, s := range h.secrets {
		for at := bytes.Index(p, s); at >= 0; at = bytes.Index(p, s) {
			copy(p[at:], bytes.Repeat([]byte{'*'}, len(s)))
		}
	}
}

// partialSecret returns the length of the longest end of p that is the beginning of a secret.
func (h *hiding) partialSecret(p []byte) (longest int) {
	for _, s := range h.secrets {
		for n := min(len(p), len(s)-1); n > longest; n-- {
			if p[len(p)-n] == s[0] && bytes.Equal(p[len(p)-n:], s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// joinQueries returns the parameters of both queries as one query.
func joinQueries(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return strings.Join([]string{a, b}, "&")
}
