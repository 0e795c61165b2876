package wire

import (
	"cmp"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a dialect of one operation, whose answers are read as OpenAI's.
type plain struct{ inPath bool } // the model stands in the path

func (plain) Name() string { return "plain" }
func (plain) Root() string { return "/v1" }

func (p plain) Path(operation, model string) (string, bool) {
	if p.inPath {
		return "/" + model + "/ask", operation == provider.Chat
	}
	return "/chat/completions", operation == provider.Chat
}

func (plain) Body(r provider.Request) ([]byte, error) { return r.Body, nil }

func (plain) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}

func (plain) Text(body []byte) (string, bool) { return string(body), true }

// local is a configuration for a server of one's own, where it says nothing else.
func local(cfg Config) Config {
	if cfg.Dialect == nil {
		cfg.Dialect = plain{}
	}
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "http://127.0.0.1:1")
	return cfg
}
