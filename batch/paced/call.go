package paced

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
	"github.com/headrace/headrace/provider/rawjson"
)

// MaxBody is the maximum size in bytes of a request's body that is kept for a further try. It
// holds any chat with its pictures. A longer body is sent as it is read; without a GetBody its
// call has one try.
const MaxBody = 32 << 20

// maxModel bounds the name of a model in a lane's name, in bytes. The ARN of an inference profile
// is the longest that is in use, with some hundred.
const maxModel = 256

// A Call is one request of a client, as an item of [batch.Do]. Options about items take it:
//
//	batch.WithPoolOf(func(c *paced.Call) string { return "my-key/" + c.Model })
//	batch.WithCostOf(func(c *paced.Call) batch.Cost { … })
type Call struct {
	Request *http.Request // the client's, not to be changed; its body has been read
	// Operation names the work that the request asks of a model, one of [provider.Operations]; "" if it asks
	// none, such as an upload of a file.
	Operation string
	Model     string // "" if the request names none
	Body      []byte // not to be changed; nil if there is none or it is over MaxBody

	isWhole bool      // Body is all of it
	unread  io.Reader // a body over MaxBody; nil once it was sent
}

// operationPaths are the ends of paths by which requests ask a model, and their operations. The answer to
// an operation may be a stream.
var operationPaths = []struct{ path, operation string }{
	{"/chat/completions", provider.Chat},
	{"/completions", provider.Completions},
	{"/embeddings", provider.Embeddings},
	{"/responses", provider.Responses},
	{"/moderations", provider.Moderations},
	{"/rerank", provider.Rerank},
	{"/v1/messages", provider.Messages},
	{":generateContent", provider.GenerateContent},
	{":streamGenerateContent", provider.GenerateContent},
	{":embedContent", provider.EmbedContent},
	{":batchEmbedContents", provider.BatchEmbedContents},
	{"/converse", provider.Converse},
	{"/converse-stream", provider.Converse},
	{"/v2/embed", provider.CohereEmbed},
	{"/invoke", provider.Invoke},
	{"/invoke-with-response-stream", provider.Invoke},
}

// newCall makes a call of a request, and reads its body up to MaxBody.
func newCall(req *http.Request) (*Call, error) {
	c := &Call{Request: req, isWhole: true}
	if req.Body != nil && req.Body != http.NoBody {
		if err := c.readBody(); err != nil {
			return nil, err
		}
	}
	if req.Method == http.MethodPost && req.URL != nil {
		c.findModel()
	}
	return c, nil
}

// readBody keeps the body if it is within MaxBody. Of a longer one it keeps a reader, which can be sent once.
func (c *Call) readBody() error {
	var buffer bytes.Buffer
	body := c.Request.Body
	if n := c.Request.ContentLength; n > 0 && n <= MaxBody {
		buffer.Grow(int(n) + bytes.MinRead)
	}
	switch n, err := io.Copy(&buffer, io.LimitReader(body, MaxBody+1)); {
	case err != nil:
		return errors.Join(err, body.Close())
	case n > MaxBody:
		c.isWhole, c.unread = false, io.MultiReader(&buffer, body)
		return nil
	}
	c.Body = buffer.Bytes()
	return body.Close()
}

// findModel finds out which operation the request asks of which model. Gemini, Bedrock and Azure have the model in
// the path, all others in the body.
func (c *Call) findModel() {
	for _, e := range operationPaths {
		before, is := strings.CutSuffix(c.Request.URL.Path, e.path)
		if !is {
			continue
		}
		c.Operation = e.operation
		for _, folder := range [...]string{"/models/", "/model/", "/deployments/"} {
			if _, model, found := strings.Cut(before, folder); found {
				c.Model = model
				return
			}
		}
		if name := rawjson.Lookup(c.Body, "model"); rawjson.IsString(name) {
			c.Model = string(rawjson.Unquote(name))
		}
		return
	}
}

// Pool returns the call's lane: its host and its model, or its host alone.
func (c *Call) Pool() string {
	if c.Request.URL == nil {
		return "" // the base says that it is missing
	}
	host := c.Request.URL.Host
	if c.Model == "" || len(c.Model) > maxModel {
		return host
	}
	return host + "/" + c.Model
}

// Cost returns one request, and the tokens that the body is taken for.
func (c *Call) Cost() batch.Cost {
	cost := batch.Cost{Requests: 1}
	if c.Operation != "" {
		cost.Input, cost.Output = estimate.For(c.Operation, c.Body)
	}
	return cost
}

// request returns the request for one more try, whose context is ctx.
func (c *Call) request(ctx context.Context) (*http.Request, error) {
	req := c.Request.WithContext(ctx)
	switch {
	case c.isWhole && len(c.Body) > 0:
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.Body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(c.Body))
	case c.isWhole:
		if req.Body != nil {
			req.Body, req.ContentLength = http.NoBody, 0
		}
	case c.unread != nil:
		req.Body = struct {
			io.Reader
			io.Closer
		}{c.unread, c.Request.Body}
		c.unread = nil
	default:
		body, err := req.GetBody() // it is there, or the call may not be repeated
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	return req, nil
}

// close closes a body that was not read to its end. The base may have closed it, too.
func (c *Call) close() {
	if !c.isWhole {
		_ = c.Request.Body.Close()
	}
}

// mayRepeat reports whether the call may be made once more. It may if the provider has done nothing for it,
// provided that its body can be read again. Otherwise the provider may have done the work. To ask
// a model twice costs no more than money, as in a run. Anything else must be safe to do twice, by
// its method or since the client says so.
func (c *Call) mayRepeat(undone bool) bool {
	if !c.isWhole && c.Request.GetBody == nil {
		return false
	}
	if undone || c.Operation != "" {
		return true
	}
	switch c.Request.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return c.Request.Header.Get("Idempotency-Key") != ""
}
