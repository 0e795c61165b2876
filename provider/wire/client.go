package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/rawjson"
)

// Client makes calls. Many goroutines may use it at once. It starts no goroutines but
// those of its connections.
type Client struct {
	cfg           Config
	dialect       provider.Dialect
	streams       provider.Streamer // the dialect, if answers may come as streams; else nil
	served        []string          // the operations of the dialect that it has
	http          *http.Client
	custom        bool // http is made of the user's parts: its transport may change what it is given
	base          string
	header        http.Header // of every request; with the proof of who calls, if that is the same for all
	appliesAuth   bool        // the proof of who calls is made for each request
	room          *room       // for answers that are long
	noUsageOption atomic.Bool // streams are asked for without their usage: the server knows no such option

	templates map[string]*http.Request // of operations whose URL is the same for every model; not to be changed
}

// New checks the configuration and returns a client. It makes no call. An error is
// of kind Misconfigured and contains no secret.
func New(cfg Config) (*Client, error) {
	if cfg.Dialect == nil {
		return nil, &provider.Error{Kind: provider.Misconfigured, Provider: cmp.Or(cfg.Name, "wire"), Err: errors.New("there is no dialect")}
	}
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, dialect: cfg.Dialect, served: Served(cfg.Dialect, cfg.Serves...), http: httpClient(cfg), custom: cfg.HTTPClient != nil || cfg.Transport != nil,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		room:   newRoom(cfg.MaxBodies, cfg.MaxBody),
	}
	if cfg.Stream != StreamNever {
		c.streams, _ = cfg.Dialect.(provider.Streamer)
	}
	maps.Copy(c.header, cfg.Header)
	if same, is := cfg.Auth.(auth.Fixed); is {
		maps.Copy(c.header, same.Header())
	} else {
		c.appliesAuth = true
	}
	if err := c.prepare(); err != nil {
		return nil, &provider.Error{Kind: provider.Misconfigured, Provider: cfg.Name, Err: err}
	}
	return c, nil
}

// prepare completes the base URL, checks the members for bodies, and makes the templates of requests.
func (c *Client) prepare() (err error) {
	if len(c.served) == 0 {
		return errors.New("the dialect has no operation that is known")
	}
	if c.base, err = baseURL(c.cfg.BaseURL, c.dialect.Root()); err != nil {
		return err
	}
	for _, m := range []string{c.cfg.InBody, c.cfg.Tier} {
		object := []byte("{" + m + "}")
		if m != "" && (!rawjson.Valid(object) || len(rawjson.Members(object, nil)) != 1) {
			return fmt.Errorf(`in bodies: %q is not one member of an object, such as "a":"b"`, m)
		}
	}
	return c.makeTemplates()
}

// CloseIdle closes the connections that no call uses. A program that ends needs
// not do it; a test that looks for goroutines must.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Timeout returns the configuration's, for batch.WithAttemptTimeout.
func (c *Client) Timeout() time.Duration { return c.cfg.Timeout }

// Base returns the base URL of the calls, complete.
func (c *Client) Base() string { return c.base }

// String hides the key from %v.
func (c *Client) String() string { return c.cfg.Name + " client for " + c.base }

// GoString hides the key from %#v.
func (c *Client) GoString() string { return c.String() }

// Do sends a request and returns the answer's body as it came. A body in the dialect's own
// words is sent as it is. One of OpenAI's chats, or a request for its embeddings, is translated
// if the dialect is another. Before anything is sent, Do refuses some requests with kind Invalid:
//
//   - an operation that the dialect does not have
//   - an empty body
//   - a body that asks for a stream or for a task in the background (a line of results is one
//     JSON value, and whole)
//   - a body that cannot be translated exactly
//
// A request whose proof of who calls has expired meanwhile is sent once more, with a fresher
// one. Nothing was done for it, and the replacement of a key is no fault of the provider. If
// the server does not know the option that asks a stream for its usage, the request is sent
// once more without it.
func (c *Client) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	x, reply, e := c.exchange(ctx, r)
	if e != nil && (x.stale || c.refusedUsageOption(&x, e)) {
		x.Release()
		x, reply, e = c.exchange(ctx, r)
	}
	if e != nil || !c.cfg.HoldBodies {
		x.Release()
	}
	switch {
	case e != nil && x.req == nil: // nothing was sent
		return provider.Reply{}, e
	case e != nil:
		return provider.Reply{Status: e.Status, RequestID: e.RequestID, Body: e.Body, Usage: reply.Usage, HasUsage: reply.HasUsage}, e
	}
	if c.cfg.HoldBodies && x.long != nil {
		reply.Done = x.long.giveBack
	}
	if c.cfg.Text {
		reply.Text, reply.HasText = c.dialect.Text(reply.Body)
	}
	return reply, nil
}

// exchange sends a request once.
func (c *Client) exchange(ctx context.Context, r provider.Request) (x Exchange, reply provider.Reply, e *provider.Error) {
	req, translated, err := c.request(ctx, r)
	if err != nil {
		return x, reply, c.refused(err)
	}
	if x = c.Fetch(req); c.cfg.Heard != nil && x.Header != nil {
		c.cfg.Heard(x.Header)
	}
	reply, e = c.Read(ctx, &x)
	if usage, has := provider.UsageIn(x.usage); e != nil && has && !reply.HasUsage {
		reply.Usage, reply.HasUsage = usage, true
		rec := provider.RecorderFrom(ctx)
		if rec.Usage(reply.Usage); x.Err != nil {
			rec.Cut() // whatever the end is called, more may have been used
		}
	}
	reply.Translated = translated
	return x, reply, e
}

// refused returns the error of a request that is not sent. The source of the proof may name another
// kind than Invalid.
func (c *Client) refused(err error) *provider.Error {
	var own *provider.Error
	if errors.As(err, &own) {
		return c.named(own)
	}
	return c.named(&provider.Error{Kind: provider.Invalid, Err: err})
}

// request builds the HTTP request of a call, and reports whether its body was translated.
func (c *Client) request(ctx context.Context, r provider.Request) (req *http.Request, translated bool, err error) {
	operation := r.Endpoint
	body, translated, err := c.body(&r, &operation)
	if err != nil {
		return nil, false, err
	}
	// the vendor wants a member of its own in place of the model
	if c.cfg.InBody != "" && rawjson.IsObject(rawjson.Trim(body)) {
		body = inPlaceOfModel(body, c.cfg.InBody)
	}
	if c.cfg.Tier != "" && asksForWords(operation) && rawjson.IsObject(rawjson.Trim(body)) {
		body = withTier(body, c.cfg.Tier)
	}
	authCtx := ctx // a source may make requests of its own: they must not be noted as the departure of this one
	if !c.custom {
		ctx = watched(ctx)
	}
	if s := c.newStreamed(ctx, operation, r.Model, body); s != nil {
		ctx, body = s, c.streams.StreamBody(operation, body, s.counts)
	}
	if req, err = c.newRequest(ctx, operation, r.Model); err != nil {
		return nil, false, err
	}
	if c.custom {
		loadTracked(req, body)
	} else {
		load(req, body)
	}
	if c.appliesAuth {
		err = c.cfg.Auth.Apply(authCtx, req, body)
	}
	return req, translated, err
}

// body returns the body to send. A request for an operation that the dialect lacks may be
// translated: operation then becomes the dialect's own.
func (c *Client) body(r *provider.Request, operation *string) (body []byte, translated bool, err error) {
	if len(r.Body) == 0 {
		return nil, false, errors.New("the request has no body")
	}
	if c.serves(r) {
		body, err = c.dialect.Body(*r)
		return body, false, err
	}
	*operation, body, err = Translate(c.dialect, c.served, *r)
	return body, true, err
}

// Translates returns OpenAI's operations that can be translated into a dialect.
func Translates(d provider.Dialect) (operations []string) {
	if _, can := d.(provider.Translator); can {
		operations = append(operations, provider.Chat)
	}
	if _, can := d.(provider.Embedder); can {
		operations = append(operations, provider.Embeddings)
	}
	return operations
}

// Translate translates a request into a dialect of which the given operations are served, and
// returns the operation of the new body. It refuses a request that fits none of these.
func Translate(d provider.Dialect, served []string, r provider.Request) (operation string, body []byte, err error) {
	if to, can := d.(provider.Translator); can && r.Endpoint == provider.Chat {
		body, err = to.FromChat(r, provider.Defaults{MaxTokens: r.MaxTokens})
		return served[0], body, err
	}
	if to, can := d.(provider.Embedder); can && r.Endpoint == provider.Embeddings {
		operation, body, err = to.FromEmbeddings(r)
	}
	switch {
	case err != nil:
		return operation, nil, err
	case slices.Contains(served, operation):
		return operation, body, nil
	case operation == provider.BatchEmbedContents && slices.Contains(served, provider.EmbedContent):
		return operation, nil, &provider.Untranslatable{Dialect: d.Name(), Field: "input", Why: "has more than 1 text"}
	}
	return r.Endpoint, nil, notServed(r.Endpoint, served)
}

// inPlaceOfModel returns an object without its model and with member in its place, unless the object
// has a member of that name. The object itself stays as it is.
func inPlaceOfModel(object []byte, member string) []byte {
	object = rawjson.Trim(object)
	name := rawjson.Members([]byte("{"+member+"}"), nil)[0].Name
	out := append(make([]byte, 0, len(object)+len(member)+1), '{')
	if own := rawjson.Lookup(object, string(name)); own == nil || string(name) == "model" {
		out = append(append(out, member...), ',')
	}
	for _, m := range rawjson.Members(object, nil) {
		if string(m.Name) != "model" {
			out = append(append(out, m.Raw...), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}')
}

// asksForWords reports whether a request for an operation may name a tier of service. OpenAI's
// older completions, and whatever only reads, know no tiers.
func asksForWords(operation string) bool {
	switch operation {
	case provider.Chat, provider.Responses, provider.GenerateContent, provider.Converse:
		return true
	}
	return false
}

// withTier returns an object with member in front, unless the object names a tier itself. The object
// stays as it is.
func withTier(object []byte, member string) []byte {
	object = rawjson.Trim(object)
	own := foldName(rawjson.Members([]byte("{"+member+"}"), nil)[0].Name)
	members := rawjson.Members(object, nil)
	for _, m := range members {
		if foldName(m.Name) == own {
			return object
		}
	}
	out := append(append(make([]byte, 0, len(object)+len(member)+1), '{'), member...)
	if len(members) > 0 {
		out = append(out, ',')
	}
	return append(out, object[1:]...)
}

// foldName returns the same text for each spelling of a name. Google's servers take service_tier and
// serviceTier for one member, and refuse a body with both.
func foldName(name []byte) string {
	return strings.ToLower(strings.ReplaceAll(string(name), "_", ""))
}

// serves reports whether a request goes out in its own words. If the configuration names no
// operations, the dialect decides: it may know other spellings of one.
func (c *Client) serves(r *provider.Request) bool {
	if c.cfg.Serves != nil {
		return slices.Contains(c.served, r.Endpoint)
	}
	_, has := c.dialect.Path(r.Endpoint, r.Model)
	return has
}

func notServed(operation string, served []string) error {
	return fmt.Errorf("endpoint %.64q is not one of %s", operation, strings.Join(served, ", "))
}

// Served returns the operations that a dialect has, in the order of [provider.Operations]. For a
// [provider.Translator] the first is the one that chats are translated into. If only names some,
// Served returns those of them that the dialect has, in their order.
func Served(d provider.Dialect, only ...string) []string {
	if only == nil {
		only = provider.Operations()
	}
	var all []string
	for _, operation := range only {
		if _, has := d.Path(operation, "any"); has {
			all = append(all, operation)
		}
	}
	return all
}

// newRequest returns a request without its body, from the template if there is one. It refuses unknown
// operations, so that no line of an input can send the key anywhere else.
func (c *Client) newRequest(ctx context.Context, operation, model string) (*http.Request, error) {
	if _, is := ctx.(*streamed); is {
		return c.newStreamRequest(ctx, operation, model)
	}
	ready := c.templates[operation]
	if ready == nil {
		return c.newTemplate(ctx, operation, model)
	}
	if c.custom || c.appliesAuth {
		return ready.Clone(ctx), nil
	}
	return ready.WithContext(ctx), nil
}

func (c *Client) newTemplate(ctx context.Context, operation, model string) (*http.Request, error) {
	path, has := c.dialect.Path(operation, model)
	if !has {
		return nil, notServed(operation, c.served)
	}
	return c.requestTo(ctx, c.cfg.Path, path, model)
}

// requestTo returns a request, without its body, to a path of the dialect. template is the vendor's
// form of the path, in which {path} and {model} are filled in.
func (c *Client) requestTo(ctx context.Context, template, path, model string) (*http.Request, error) {
	if version, _, below := strings.Cut(strings.TrimPrefix(path, "/"), "/"); below && isVersion(version) && strings.HasSuffix(c.base, "/"+version) {
		path = strings.TrimPrefix(path, "/"+version) // the base has the version already
	}
	path = strings.NewReplacer("{path}", path, "{model}", provider.Segment(model)).Replace(template)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, http.NoBody)
	if err != nil {
		return nil, errors.New("base URL: it does not parse as a URL")
	}
	req.Header = c.header
	if c.custom || c.appliesAuth {
		req.Header = c.header.Clone()
	}
	return req, nil
}

// isVersion reports whether a part of a path names a version, such as v1 and v1beta.
func isVersion(part string) bool {
	return len(part) > 1 && part[0] == 'v' && part[1] >= '0' && part[1] <= '9'
}

// makeTemplates makes, once for all calls, the requests of the operations whose URL does not depend on
// the model. No code between here and the wire changes a request's URL or headers. A custom transport
// might: it gets a request of its own.
func (c *Client) makeTemplates() error {
	c.templates = map[string]*http.Request{}
	for _, operation := range c.served {
		one, err := c.newTemplate(context.Background(), operation, "one")
		if err != nil {
			return err
		}
		other, err := c.newTemplate(context.Background(), operation, "another")
		if err != nil {
			return err
		}
		if one.URL.String() == other.URL.String() {
			c.templates[operation] = one
		}
	}
	return nil
}
