package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/chat/chattest"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/tests/foreign/part"
)

// translators are ours, and Portkey's names for the same dialects. Each has the shapes in
// which both can be compared, and what Portkey adds, drops or says otherwise, one by one:
// everything else must be equal.
var translators = []struct {
	name, portkey string
	fromChat      chattest.FromChat
	refused       string // ends the path of a field that may be refused; "" is none
	with          chattest.With
	known         []allowance
}{
	{"anthropic", "anthropic", anthropic.FromChat, "", chattest.Images | chattest.Links | chattest.Files | chattest.Tools | chattest.ResultParts | chattest.Users, []allowance{textAsString, noSystem, emptyText, streamFalse, stopAlone, noStop, ones, nobody, noTools, turnsOfResults, wholeURL, choiceAuto, noDefs, notStrict, openSchema}},
	{"gemini", "google", gemini.FromChat, ".function.strict", chattest.Images | chattest.FreeJSON | chattest.Tools, slices.Concat([]allowance{modelInBody, systemRole, textAlone, emptyText, oneSystem, oneTurn, stopAloneInConfig, noStop, noTools}, geminiTools, []allowance{lostWords})},
	{"converse", "bedrock", converse.FromChat, ".file", chattest.Images | chattest.Files | chattest.Tools | chattest.ResultParts, []allowance{stopAloneInConfig, noStop, emptyText, anyName, noTools, choiceAuto, notStrict}},
}

const (
	chatModel  = "gpt-5-mini" // of every body; it stands in the URL of two dialects
	chats      = 1000         // bodies for each dialect
	chatsShort = 150
	chatBound  = 777 // of bodies that have none
	atOnce     = 4   // calls, of each dialect
)

// A chat body of the strict subset comes to the same in Portkey's gateway, which other
// people wrote, as it does here.
func TestTranslationEqualsPortkeys(t *testing.T) {
	n := chats
	if part.Short() {
		n = chatsShort
	}
	gateway := startPortkey(t)
	for _, tr := range translators {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			bodies, theirs := make([][]byte, n), make([][]byte, n)
			rng := rand.New(rand.NewPCG(13, uint64(len(tr.name)))) //nolint:gosec // bodies are no secret
			ours := make([][]byte, n)
			for i := range bodies {
				bodies[i], ours[i] = taken(t, tr.fromChat, tr.refused, func() []byte { return bounded(t, chattest.Body(rng, tr.with)) })
			}
			gateway.translate(t, tr.portkey, bodies, theirs)
			used := make([]int, len(tr.known))
			for i, body := range bodies {
				a, b := object(t, ours[i]), object(t, theirs[i])
				for k, allow := range tr.known {
					if allow.apply(a, b) {
						used[k]++
					}
				}
				if at := difference("", a, b); at != "" {
					t.Fatalf("%d: %s\n  %s\n  ours   %s\n  theirs %s", i, body, at, ours[i], theirs[i])
				}
			}
			for k, allow := range tr.known {
				t.Logf("%4d of %d: %s", used[k], n, allow.what)
				if used[k] == 0 { // who has no such case any more must not be let off
					t.Errorf("never seen: %s", allow.what)
				}
			}
		})
	}
}

// The effort of Gemini 3 Flash is the level of the same name there, too. Portkey sends names of
// levels to all models, also to Gemini 2.5, which refuses them: those are not compared.
func TestEffortEqualsPortkeys(t *testing.T) {
	efforts := []string{"minimal", "low", "medium", "high"}
	bodies, theirs := make([][]byte, len(efforts)), make([][]byte, len(efforts))
	for i, effort := range efforts {
		bodies[i] = fmt.Appendf(nil, `{"model":%q,"reasoning_effort":%q,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, thinkingModel, effort)
	}
	startPortkey(t).translate(t, "google", bodies, theirs)
	for i, effort := range efforts {
		sent, err := gemini.FromChat(provider.Request{Model: thinkingModel, Body: bodies[i]}, provider.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		a, b := levelIn(t, sent), levelIn(t, theirs[i])
		if a == "" || !strings.EqualFold(a, b) {
			t.Errorf("%s: ours %q, theirs %q", effort, a, b)
		}
	}
}

// thinkingModel is one to which Portkey and Google's own door say the same.
const thinkingModel = "gemini-3-flash-preview"

func levelIn(t *testing.T, body []byte) string {
	t.Helper()
	level, _ := fields(fields(object(t, body)["generationConfig"])["thinkingConfig"])["thinkingLevel"].(string)
	return level
}

// taken is the next body that is not refused, and what is sent for it. Only a field whose path
// ends as refused does may be refused.
func taken(t *testing.T, fromChat chattest.FromChat, refused string, next func() []byte) (body, sent []byte) {
	t.Helper()
	for {
		body = next()
		sent, err := fromChat(provider.Request{Model: chatModel, Body: body}, provider.Defaults{})
		if err == nil {
			return body, sent
		}
		if why := new(provider.Untranslatable); refused == "" || !errors.As(err, &why) || !strings.HasSuffix(why.Field, refused) {
			t.Fatalf("%s: %v", body, err)
		}
	}
}

// bounded gives a body a bound: without one Portkey makes up one of its own.
func bounded(t *testing.T, body []byte) []byte {
	t.Helper()
	said := object(t, body)
	if said["max_tokens"] != nil || said["max_completion_tokens"] != nil {
		return body
	}
	return append([]byte(fmt.Sprintf(`{"max_tokens":%d,`, chatBound)), bytes.TrimLeft(body, "{ \t\n")...)
}

func object(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	return o
}

// portkey is a gateway of Portkey's, and behind it a provider that keeps what it is sent.
type portkey struct {
	url, provider string
	client        *http.Client
	kept          sync.Map // what came, by the first part of the path
}

func startPortkey(t *testing.T) *portkey {
	t.Helper()
	p := &portkey{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 3 * atOnce}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		number, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		p.kept.Store(number, body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(p.client.CloseIdleConnections)
	p.provider = server.URL
	p.url = part.Serve(t, part.Node(t, "portkey.mjs"), "listening on ")
	return p
}

// translate has each body translated.
func (p *portkey) translate(t *testing.T, to string, bodies, sent [][]byte) {
	t.Helper()
	var asking sync.WaitGroup
	for worker := range atOnce {
		asking.Go(func() {
			for i := worker; i < len(bodies); i += atOnce {
				number := fmt.Sprintf("%s-%d", to, i)
				if err := p.ask(t, to, number, bodies[i]); err != nil {
					t.Errorf("%s: %v", number, err)
					return
				}
				body, _ := p.kept.LoadAndDelete(number)
				sent[i], _ = body.([]byte)
			}
		})
	}
	asking.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (p *portkey) ask(t *testing.T, to, number string, body []byte) error {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer key",
		"X-Portkey-Provider": to, "X-Portkey-Custom-Host": p.provider + "/" + number,
		"X-Portkey-Aws-Access-Key-Id": "AKIDEXAMPLE", "X-Portkey-Aws-Secret-Access-Key": "not-a-secret", "X-Portkey-Aws-Region": "eu-central-1",
	} {
		r.Header.Set(name, value)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body) // that {} is no answer is no matter
	_ = answer.Body.Close()
	return err
}
