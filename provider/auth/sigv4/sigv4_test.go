package sigv4_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// suite is the key of AWS's published vectors.
var suite = sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

// vectors are of AWS's Signature Version 4 test suite, and the example of its guide (the
// last), all of 2015-08-30T12:36:00Z in us-east-1.
var vectors = []struct{ name, method, url, contentType, body, service, signature string }{
	{"get-vanilla", "GET", "https://example.amazonaws.com/", "", "", "service", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
	{"post-vanilla", "POST", "https://example.amazonaws.com/", "", "", "service", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
	{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "", "service", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	{"get-unreserved", "GET", "https://example.amazonaws.com/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "", "", "service", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
	{"get-utf8", "GET", "https://example.amazonaws.com/\u1234", "", "", "service", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
	{"post-x-www-form-urlencoded", "POST", "https://example.amazonaws.com/", "application/x-www-form-urlencoded", "Param1=value1", "service", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	{"iam", "GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", "application/x-www-form-urlencoded; charset=utf-8", "", "iam", "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
}

// AWS's own vectors come out, at their hour; and the checker of these tests accepts them, and
// so makes the same of them.
func TestVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)))
		for _, v := range vectors {
			s := newSource(t, suite, "us-east-1", v.service)
			r := must.Get(http.NewRequestWithContext(t.Context(), v.method, v.url, strings.NewReader(v.body)))(t)
			if v.contentType != "" {
				r.Header.Set("Content-Type", v.contentType)
			}
			must.Do(t, s.Apply(t.Context(), r, []byte(v.body)))
			if v.name == "get-utf8" { // the suite is of services that escape once
				continue
			}
			if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+v.signature) {
				t.Errorf("%s: %s", v.name, got)
			}
			came, body := onTheWire(t, r)
			c := checker{id: suite.AccessKeyID, secret: suite.SecretAccessKey, region: "us-east-1", service: v.service}
			if err := c.check(came, body, time.Now()); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
		}
	})
}

// The checker of these tests makes AWS's signatures by itself.
func TestCheckerOnVectors(t *testing.T) {
	for _, v := range vectors {
		u := must.Get(url.Parse(v.url))(t)
		const date = "20150830T123600Z"
		r := &http.Request{Method: v.method, Host: u.Host, RequestURI: u.Path, Header: http.Header{"X-Amz-Date": {date}}}
		if u.RawQuery != "" {
			r.RequestURI += "?" + u.RawQuery
		}
		names := []string{"host", "x-amz-date"}
		if v.contentType != "" {
			r.Header.Set("Content-Type", v.contentType)
			names = append([]string{"content-type"}, names...)
		}
		c := checker{secret: suite.SecretAccessKey}
		if got := c.signature("20150830/us-east-1/"+v.service+"/aws4_request", date, canonical(r, names, []byte(v.body))); got != v.signature {
			t.Errorf("%s: %s, not %s", v.name, got, v.signature)
		}
	}
}

func newSource(t *testing.T, c sigv4.Credentials, region, service string) *sigv4.Source {
	t.Helper()
	s := must.Get(sigv4.New(c, region, service))(t)
	return s
}

// onTheWire is a request as a server reads it.
func onTheWire(t *testing.T, r *http.Request) (came *http.Request, body []byte) {
	t.Helper()
	var wire bytes.Buffer
	must.Do(t, r.Write(&wire))
	came, err := http.ReadRequest(bufio.NewReader(&wire))
	if err == nil {
		body, err = io.ReadAll(came.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return came, body
}

// random is a made-up call of Bedrock's.
type random struct{ *rand.Rand }

func (r random) of(words ...string) string { return words[r.IntN(len(words))] }

func (r random) text(letters string, most int) string {
	out := []rune{}
	all := []rune(letters)
	for range 1 + r.IntN(most) {
		out = append(out, all[r.IntN(len(all))])
	}
	return string(out)
}

const (
	idLetters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	anyLetters  = idLetters + " :/+=%?#&;,@!$'()*[]{}|\"<>^`\\~äß日本"
	bodyLetters = anyLetters + "\n\t\x00"
)

func (r random) model() string {
	switch r.IntN(4) {
	case 0:
		return r.of("eu.", "us.", "apac.", "") + "anthropic." + r.text(idLetters, 20) + ":" + r.text("0123456789", 2)
	case 1:
		return "arn:aws:bedrock:eu-central-1:" + r.text("0123456789", 12) + ":application-inference-profile/" + r.text(idLetters, 12)
	case 2:
		return r.text(idLetters, 20)
	}
	return r.text(anyLetters, 20)
}

// request is one that was made of pieces, and its body. The model may be escaped as Go does
// it, which leaves ":" as it is, or as AWS does.
func (r random) request(t *testing.T) (*http.Request, []byte) {
	t.Helper()
	model := url.PathEscape(r.model())
	if r.IntN(2) == 0 {
		model = strings.ReplaceAll(model, ":", "%3A")
	}
	address := r.of("https://bedrock-runtime.eu-central-1.amazonaws.com", "https://host:443", "http://host:80", "http://127.0.0.1:8080") +
		r.of("", "/base") + "/model/" + model + r.of("/converse", "/invoke") + r.of("", "", "?a=1&B=2&a=0")
	body := []byte(r.text(bodyLetters, 200))
	if r.IntN(20) == 0 {
		body = nil
	}
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body)))(t)
	q.Header.Set("Content-Type", r.of("application/json", "application/json;  charset=utf-8"))
	if r.IntN(2) == 0 {
		q.Header.Set("X-Amzn-Bedrock-Trace", r.of("ENABLED", "DISABLED"))
		q.Header.Set("X-Amz-Meta", "a   b")
		q.Header.Set("Accept", "application/json")
	}
	return q, body
}

// A thousand random requests are accepted by who checks what came, and each that was changed
// on the way is not.
func TestRandomRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := random{rand.New(rand.NewPCG(1, 2))}
		for i := range 1000 {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Minute) // over days, for each of which there is a key
			c := checker{id: "AKIA" + r.text(idLetters, 16), secret: r.text(idLetters+"/+", 40), region: r.of("eu-central-1", "us-east-1"), service: sigv4.Bedrock}
			if r.IntN(2) == 0 {
				c.token = r.text(idLetters+"/+=", 400)
			}
			s := newSource(t, sigv4.Credentials{AccessKeyID: c.id, SecretAccessKey: c.secret, SessionToken: c.token}, c.region, c.service)
			q, body := r.request(t)
			for range 1 + r.IntN(2) { // another try of the same
				must.Do(t, s.Apply(t.Context(), q, body))
			}
			came, got := onTheWire(t, q)
			if err := c.check(came, got, time.Now()); err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%d: %s: %v", i, q.URL, err)
			}
			if strings.ContainsAny(came.RequestURI, ":+=@$&;,") && !strings.Contains(came.RequestURI, "?") {
				t.Fatalf("%d: %s has more than is sent", i, came.RequestURI)
			}
			changed := r.change(came, &got)
			if err := c.check(came, got, time.Now()); err == nil {
				t.Fatalf("%d: %s: %s was changed, and nobody noticed", i, q.URL, changed)
			}
		}
	})
}

// change changes something that was signed, and says what.
func (r random) change(q *http.Request, body *[]byte) string {
	switch what := r.of("Content-Type", "X-Amz-Date", "Host", "path", "body", "method"); what {
	case "Host":
		q.Host += "x"
		return what
	case "path":
		q.RequestURI = strings.Replace(q.RequestURI, "/model/", "/model/x", 1)
		return what
	case "body":
		*body = append(*body, ' ')
		return what
	case "method":
		q.Method = http.MethodPut
		return what
	case "X-Amz-Date":
		q.Header.Set(what, time.Now().Add(-time.Second).UTC().Format("20060102T150405Z"))
		return what
	default:
		q.Header.Set(what, "text/plain")
		return what
	}
}

// The path is escaped once by who sends and once by who checks, whatever Go made of it; the
// request that it was copied from is as it was.
func TestPath(t *testing.T) {
	s := newSource(t, suite, "us-east-1", sigv4.Bedrock)
	const arn = "arn:aws:bedrock:us-east-1:012345678901:inference-profile/a.b-c"
	for _, tt := range []struct{ path, sent string }{
		{"/model/anthropic.claude-v2:1/converse", "/model/anthropic.claude-v2%3A1/converse"},
		{"/model/anthropic.claude-v2%3A1/converse", "/model/anthropic.claude-v2%3A1/converse"},
		{"/model/" + url.PathEscape(arn) + "/converse", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A012345678901%3Ainference-profile%2Fa.b-c/converse"},
		{"/model/a%25b%20c/converse", "/model/a%25b%20c/converse"},
		{"/", "/"},
		{"", ""},
	} {
		blank := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host"+tt.path, http.NoBody))(t)
		before, r := blank.URL.String(), *blank // as who sends many copies them
		r.Header = http.Header{}
		must.Do(t, s.Apply(t.Context(), &r, nil))
		if got := r.URL.EscapedPath(); got != tt.sent || blank.URL.String() != before {
			t.Errorf("%s: %s is sent; %s was %s", tt.path, got, blank.URL, before)
		}
	}
}

// Many may sign at once, copies of one request.
func TestSourceIsShared(t *testing.T) {
	s := newSource(t, suite, "us-east-1", sigv4.Bedrock)
	blank := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/model/a:1/converse?x=1", http.NoBody))(t)
	blank.Header.Set("Content-Type", "application/json")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				r := *blank
				r.Header = http.Header{"Content-Type": blank.Header["Content-Type"]}
				if err := s.Apply(t.Context(), &r, fmt.Append(nil, i)); err != nil || r.Header.Get("Authorization") == "" {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
}

// Credentials are taken from their variables. The error names the missing one and shows no value.
func TestCredentials(t *testing.T) {
	vars := map[string]string{}
	getenv := func(name string) string { return vars[name] }
	for _, name := range []string{sigv4.AccessKeyIDVariable, sigv4.SecretAccessKeyVariable} {
		_, err := sigv4.Environment(getenv)
		if !errors.Is(err, provider.Misconfigured) || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%v", err)
		}
		vars[name] = " 0123456789-" + name + "\n"
	}
	vars[sigv4.SessionTokenVariable] = "session-0123456789"
	c := must.Get(sigv4.Environment(getenv))(t)
	s := newSource(t, c, "eu-central-1", sigv4.Bedrock)
	for _, secret := range []string{"0123456789-AWS_ACCESS_KEY_ID", "0123456789-AWS_SECRET_ACCESS_KEY", "session-0123456789"} {
		if !slices.Contains(s.Secrets(), secret) {
			t.Errorf("%q is no secret", secret)
		}
		if shown := fmt.Sprintf("%v %+v %#v %v %+v %#v", s, s, s, c, c, c); strings.Contains(shown, secret) {
			t.Errorf("%s", shown)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/", http.NoBody)
	if err != nil || s.Refused(r) {
		t.Errorf("%v", err)
	}
}

// What cannot be signed with is refused, without being shown.
func TestNewRefuses(t *testing.T) {
	const id, secret = "AKIDEXAMPLE", "very-secret-0123"
	for _, tt := range []struct {
		c               sigv4.Credentials
		region, service string
	}{
		{sigv4.Credentials{SecretAccessKey: secret}, "eu-central-1", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id}, "eu-central-1", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret + "\n"}, "eu-central-1", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id + "\n", SecretAccessKey: secret}, "eu-central-1", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: "é"}, "eu-central-1", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret}, "", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret}, "eu/central", "bedrock"},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret}, "eu-central-1", ""},
		{sigv4.Credentials{AccessKeyID: id, SecretAccessKey: secret}, "eu-central-1", "bed rock"},
	} {
		s, err := sigv4.New(tt.c, tt.region, tt.service)
		if s != nil || !errors.Is(err, provider.Misconfigured) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%v", err)
		}
	}
}

// Words that stand for credentials, where nothing checks them, are no secrets: an answer may
// use them. Nor is a token that is not there.
func TestPlaceholdersAreNoSecrets(t *testing.T) {
	s := newSource(t, sigv4.Credentials{AccessKeyID: "accesskey", SecretAccessKey: "very-secret-0123"}, "eu-central-1", sigv4.Bedrock)
	if got := s.Secrets(); !slices.Equal(got, []string{"very-secret-0123"}) {
		t.Errorf("%q", got)
	}
}

// A request that was signed with other credentials before bears nothing of them: not their
// token after one without it has signed it anew.
func TestSignedAnew(t *testing.T) {
	first := sigv4.Credentials{AccessKeyID: "AKIDFIRST", SecretAccessKey: "first-secret", SessionToken: "first-token"}
	second := sigv4.Credentials{AccessKeyID: "AKIDSECOND", SecretAccessKey: "second-secret", SessionToken: "second-token"}
	third := sigv4.Credentials{AccessKeyID: "AKIDTHIRD", SecretAccessKey: "third-secret"}
	body := []byte("{}")
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/model/m/converse", bytes.NewReader(body)))(t)
	for _, c := range []sigv4.Credentials{first, second, third, first} {
		must.Do(t, newSource(t, c, "eu-central-1", sigv4.Bedrock).Apply(t.Context(), q, body))
		if _, has := q.Header["X-Amz-Security-Token"]; has != (c.SessionToken != "") {
			t.Errorf("%s: token %q", c.AccessKeyID, q.Header.Values("X-Amz-Security-Token"))
		}
		sent := q.Clone(t.Context())
		sent.Body = io.NopCloser(bytes.NewReader(body))
		came, read := onTheWire(t, sent)
		by := checker{id: c.AccessKeyID, secret: c.SecretAccessKey, token: c.SessionToken, region: "eu-central-1", service: sigv4.Bedrock}
		if err := by.check(came, read, time.Now()); err != nil {
			t.Errorf("%s: %v", c.AccessKeyID, err)
		}
	}
}

// A request without headers gets those of its signature.
func TestNoHeaders(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "host", Path: "/"}
	q := &http.Request{Method: http.MethodGet, URL: u}
	if err := newSource(t, suite, "us-east-1", "service").Apply(t.Context(), q, nil); err != nil || q.Header.Get("Authorization") == "" {
		t.Errorf("%v, %v", err, q.Header)
	}
}

// The last character that a header may have is one of a secret.
func TestLastCharacter(t *testing.T) {
	if _, err := sigv4.New(sigv4.Credentials{AccessKeyID: "AKID", SecretAccessKey: "a~!"}, "us-east-1", "service"); err != nil {
		t.Error(err)
	}
}

// Credentials and sources say in %#v what they are, and nothing of what they hold.
func TestGoString(t *testing.T) {
	if got := fmt.Sprintf("%#v, %#v", suite, newSource(t, suite, "us-east-1", "service")); got != "credentials of AWS, signatures for service in us-east-1" {
		t.Error(got)
	}
}

// refusal is an answer by which AWS does not accept a signature.
type refusal struct {
	status     int
	name, says string
}

// The answers that blame the clock.
var (
	expired = refusal{http.StatusForbidden, "InvalidSignatureException", "Signature expired: 20150830T123600Z is now earlier than 20150830T133100Z (20150830T133600Z - 5 min.)"}
	early   = refusal{http.StatusForbidden, "InvalidSignatureException", "Signature not yet current: 20150830T143600Z is still later than 20150830T134100Z"}
	old     = refusal{http.StatusBadRequest, "RequestExpired", "Request has expired."}
	skewed  = refusal{http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."}
)

// served calls a server that checks signatures by its own clock, which is off by so much, and
// counts the calls. date is what its answers have for a date; "" is none.
func served(t *testing.T, off time.Duration, how refusal, always bool, date func(time.Time) string) (call func() error, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	by := checker{id: suite.AccessKeyID, secret: suite.SecretAccessKey, region: "us-east-1", service: sigv4.Bedrock}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		now := time.Now().Add(off)
		w.Header()["Date"] = nil
		if text := date(now); text != "" {
			w.Header().Set("Date", text)
		}
		if always || by.check(r, body, now) != nil {
			w.Header().Set("X-Amzn-Errortype", how.name+":http://internal.amazon.com/coral/com.amazon.coral.service/")
			w.WriteHeader(how.status)
			fmt.Fprintf(w, `{"message":%q}`, how.says)
			return
		}
		fmt.Fprint(w, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`)
	}))
	t.Cleanup(server.Close)
	client := must.Get(wire.New(wire.Config{Dialect: converse.Dialect{}, BaseURL: server.URL, Auth: newSource(t, suite, "us-east-1", sigv4.Bedrock)}))(t)
	t.Cleanup(client.CloseIdle)
	return func() error {
		_, err := client.Do(t.Context(), provider.Request{Endpoint: provider.Converse, Model: "m:0", Body: []byte(`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`)})
		return err
	}, calls
}

func httpDate(at time.Time) string { return at.UTC().Format(http.TimeFormat) }

// A clock that is an hour off, either way, costs one call more: that one is sent again, and all
// others are signed by the provider's time.
func TestClockIsPutRight(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		for _, how := range []refusal{expired, early, old, skewed} {
			call, calls := served(t, off, how, false, httpDate)
			for range 3 {
				if err := call(); err != nil {
					t.Errorf("off by %v, %s: %v", off, how.name, err)
				}
			}
			if n := calls.Load(); n != 4 {
				t.Errorf("off by %v, %s: %d calls, want 4", off, how.name, n)
			}
		}
	}
}

// Many calls that were signed by the wrong time are each sent again once.
func TestClockIsPutRightForAll(t *testing.T) {
	call, calls := served(t, time.Hour, expired, false, httpDate)
	const n = 20
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := calls.Load(); got > 2*n {
		t.Errorf("%d calls", got)
	}
}

// A refusal that stays is sent again once at most, whatever dates come with it.
func TestClockIsPutRightOnce(t *testing.T) {
	var turns atomic.Int64
	for name, date := range map[string]func(time.Time) string{
		"a date":         httpDate,
		"another date":   func(at time.Time) string { return httpDate(at.Add(time.Duration(turns.Add(1)) * time.Hour)) },
		"back and forth": func(at time.Time) string { return httpDate(at.Add(time.Duration(turns.Add(1)%2) * -5 * time.Hour)) },
	} {
		call, calls := served(t, time.Hour, expired, true, date)
		for i := range 4 {
			if err := call(); !errors.Is(err, provider.Unauthorized) || calls.Load() != int64(2+i) {
				t.Errorf("%s: call %d: %v, %d were sent", name, i, err, calls.Load())
			}
		}
	}
}

// What is no fault of the clock is not sent again: for another reason, without a date, and with
// one that is as good as that of the signature.
func TestOtherRefusalsStay(t *testing.T) {
	mismatch := refusal{http.StatusForbidden, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."}
	denied := refusal{http.StatusForbidden, "AccessDeniedException", "You don't have access to the model with the specified model ID."}
	near := func(at time.Time) string { return httpDate(at.Add(4 * time.Minute)) }
	for name, c := range map[string]struct {
		off  time.Duration
		how  refusal
		date func(time.Time) string
	}{
		"another signature": {time.Hour, mismatch, httpDate},
		"no access":         {time.Hour, denied, httpDate},
		"no date":           {time.Hour, expired, func(time.Time) string { return "" }},
		"no such date":      {time.Hour, expired, func(time.Time) string { return "tomorrow" }},
		"nearly right":      {0, expired, near},
	} {
		call, calls := served(t, c.off, c.how, true, c.date)
		if err := call(); !errors.Is(err, provider.Unauthorized) || calls.Load() != 1 {
			t.Errorf("%s: %v, %d calls", name, err, calls.Load())
		}
	}
}

// Somebody who sets the clock in the middle of a run does not end it: the signatures follow.
func TestClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, suite, "us-east-1", sigv4.Bedrock)
		why := &provider.Error{Kind: provider.Unauthorized, Message: expired.says}
		signed := func() (*http.Request, time.Time) {
			r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/", http.NoBody))(t)
			must.Do(t, s.Apply(t.Context(), r, nil))
			at := must.Get(time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date")))(t)
			return r, at
		}
		for _, c := range []struct {
			wait, off time.Duration // after which the machine's clock lacks so much
			again     bool
		}{
			{0, time.Hour, true},
			{9 * time.Minute, 0, false}, // too soon
			{2 * time.Minute, 0, true},
		} {
			time.Sleep(c.wait)
			r, _ := signed()
			want := time.Now().Add(c.off)
			if got := s.RefusedFor(r, why, http.Header{"Date": {httpDate(want)}}); got != c.again {
				t.Errorf("%+v: %t", c, got)
			}
			if _, at := signed(); (at.Sub(want).Abs() < 2*time.Second) != c.again {
				t.Errorf("%+v: signed at %v", c, at)
			}
		}
	})
}
