package store_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
)

// unset takes away what this machine's own account may say.
func unset(t *testing.T) {
	for _, name := range []string{
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

// An address that is not one is refused, and the error says which part of it.
func TestOpenRefuses(t *testing.T) {
	unset(t)
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for address, says := range map[string]string{
		"":                                    "a store has an address",
		file:                                  "it is a file",
		"file://" + file:                      "it is a file",
		"gs://bucket":                         "gs:// is not supported: want file:// or s3://",
		"file://host/path":                    "three slashes",
		"file:///path?mod=0600":               "mod= is not known: mode=",
		"file:///path?mode=0777":              "0777 is not one of a file",
		"file:///path?mode=0400":              "0400 is not one of a file",
		"file:///path?mode=rw":                "rw is not one of a file",
		"s3://bucket?endpint=x":               "endpint= is not known: endpoint=, region=",
		"s3://bucket?region=x&endpoint=x":     "endpoint x is not http://host:port",
		"s3://bucket?region=x&endpoint=h:1":   "is not http://host:port",
		"s3://bucket?endpoint=http://h/path":  "is not http://host:port",
		"s3://bucket/a//b?endpoint=http://h":  "two in a row",
		"s3://bucket/../b?endpoint=http://h":  ".. is no segment",
		"s3://b?region=x&endpoint=http://h:1": "name cannot be shorter",
		"s3://bucket:port/%zz":                "invalid",
		"s3://me:secret@bucket":               "credentials do not belong",
		"s3://bucket/a#b":                     "write %40 or %23",
	} {
		_, err := store.Open(t.Context(), address)
		// Secrets are shown as net/url does, by five of this letter.
		said := "store: open " + strings.Replace(address, "secret", "xxxxx", 1) + ": "
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), said) {
			t.Errorf("%s: %v does not say %q", address, err, says)
		}
	}
}

// A bucket that is not there, keys that are wrong and a server that is no S3 are found when it is
// opened, and asked for once.
func TestOpenFindsWhatIsWrong(t *testing.T) {
	server := s3test.Start(t)
	unset(t)
	t.Setenv("AWS_REGION", "us-east-1")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it says who did not trust it
	defer secure.Close()
	right := map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey}
	for _, c := range []struct {
		address, says string
		keys          map[string]string
	}{
		{"s3://none?endpoint=" + server.Endpoint, "bucket does not exist", right},
		{"s3://bucket?endpoint=" + server.Endpoint, "AccessDenied", nil},
		{"s3://bucket?endpoint=" + server.Endpoint, "SignatureDoesNotMatch", map[string]string{
			"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": "wrong",
		}},
		{"s3://bucket?endpoint=" + other.URL, "NoSuchBucket", right},
		{"s3://bucket?endpoint=" + secure.URL, "certificate", right},
		{"s3://bucket?endpoint=" + strings.Replace(other.URL, "http:", "https:", 1), "HTTP response to HTTPS client", right},
	} {
		for _, key := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
			t.Setenv(key, c.keys[key])
		}
		var asked atomic.Int64
		_, err := store.Open(t.Context(), c.address, store.WithTransport(through(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return client.RoundTrip(r)
		})))
		if err == nil || !strings.Contains(err.Error(), c.says) || asked.Load() > 1 {
			t.Errorf("%s: after %d requests %v, which does not say %q", c.address, asked.Load(), err, c.says)
		}
	}
	client.CloseIdleConnections()
}

// client is the transport of tests that look at their requests.
var client = &http.Transport{}

// through is a transport that is a function.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A bucket is found by what the usual variables and files say, and by the address before them.
func TestOpenByEnvironment(t *testing.T) {
	server := s3test.Start(t)
	unset(t)
	config, keys := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "credentials")
	must.Do(t, errors.Join(
		os.WriteFile(config, []byte("[default]\nregion = us-east-1\n[profile p]\nregion = us-east-1\n"), 0o600),
		os.WriteFile(keys, []byte("[default]\naws_access_key_id = headrace\naws_secret_access_key = headrace-secret\n"+
			"[p]\naws_access_key_id = headrace\naws_secret_access_key = headrace-secret\n"), 0o600)))
	id, secret := [2]string{"AWS_ACCESS_KEY_ID", s3test.AccessKey}, [2]string{"AWS_SECRET_ACCESS_KEY", s3test.SecretKey}
	endpoint, region := [2]string{"AWS_ENDPOINT_URL", server.Endpoint}, [2]string{"AWS_REGION", "us-east-1"}
	for name, c := range map[string]struct {
		query string
		env   [][2]string
	}{
		"endpoint":       {"", [][2]string{endpoint, region, id, secret}},
		"endpoint of S3": {"", [][2]string{{"AWS_ENDPOINT_URL_S3", server.Endpoint}, {"AWS_ENDPOINT_URL", "http://none"}, region, id, secret}},
		"address first":  {"?region=us-east-1&endpoint=" + server.Endpoint, [][2]string{{"AWS_ENDPOINT_URL_S3", "http://none"}, {"AWS_REGION", "x"}, id, secret}},
		"default region": {"", [][2]string{endpoint, {"AWS_DEFAULT_REGION", "us-east-1"}, id, secret}},
		"region asked":   {"", [][2]string{endpoint, id, secret}},
		"files":          {"", [][2]string{endpoint, {"AWS_CONFIG_FILE", config}, {"AWS_SHARED_CREDENTIALS_FILE", keys}}},
		"a profile":      {"", [][2]string{endpoint, {"AWS_CONFIG_FILE", config}, {"AWS_SHARED_CREDENTIALS_FILE", keys}, {"AWS_PROFILE", "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, set := range c.env {
				t.Setenv(set[0], set[1])
			}
			s := open(t, "s3://"+s3test.Bucket+c.query)
			if err := store.CreateBytes(t.Context(), s, name, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// answering is a store whose PUTs, or reads, get an answer of ours; of the rest the server is asked.
func answering(t *testing.T, method string, answer func(*http.Request) *http.Response) store.Store {
	t.Helper()
	server := s3test.Start(t)
	t.Cleanup(client.CloseIdleConnections)
	return open(t, server.Address("p"), store.WithClock(hurried(t)), store.WithTransport(through(
		func(r *http.Request) (*http.Response, error) {
			if r.Method == method && !s3test.IsList(r) {
				if r.Body != nil {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				return answer(r), nil
			}
			return client.RoundTrip(r)
		})))
}

func answer(r *http.Request, status int, code string) *http.Response {
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	response := w.Result()
	response.Request = r
	return response
}

// An S3 that says that it does not know the condition is refused.
func TestAnS3WithoutTheCondition(t *testing.T) {
	s := answering(t, http.MethodPut, func(r *http.Request) *http.Response {
		return answer(r, http.StatusNotImplemented, "NotImplemented")
	})
	err := store.Probe(t.Context(), s, chance(), store.ProbeConfig{})
	if !errors.Is(err, store.ErrUnsafe) || !strings.Contains(err.Error(), "knows no If-None-Match") {
		t.Errorf("%v", err)
	}
}

// One that takes every PUT and says yes to all is found out.
func TestAnS3ThatIgnoresTheCondition(t *testing.T) {
	s := answering(t, http.MethodPut, func(r *http.Request) *http.Response { return answer(r, http.StatusOK, "") })
	err := store.Probe(t.Context(), s, chance(), store.ProbeConfig{})
	if unsafe, ok := errors.AsType[*store.Unsafe](err); !ok || unsafe.Winners != store.DefaultProbeWriters {
		t.Errorf("%v", err)
	}
}

// Every PUT says that it has the condition, and that it may be sent with it.
func TestEveryPutIsConditional(t *testing.T) {
	var nonces []string
	s := answering(t, http.MethodPut, func(r *http.Request) *http.Response {
		if r.Header.Get("If-None-Match") != "*" || r.URL.RawQuery != "" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		nonces = append(nonces, r.Header.Get("X-Amz-Meta-Headrace-Nonce"))
		return answer(r, http.StatusOK, "")
	})
	for _, size := range []int{0, 1, 20 << 20} {
		if err := store.CreateBytes(t.Context(), s, "k", make([]byte, size)); err != nil {
			t.Error(err)
		}
	}
	if len(nonces) != 3 || nonces[0] == "" || nonces[0] == nonces[1] || nonces[1] == nonces[2] {
		t.Errorf("%q", nonces)
	}
	if err := s.Create(t.Context(), "k", strings.NewReader(""), store.MaxObject+1); err == nil || len(nonces) != 3 {
		t.Errorf("%v after %d", err, len(nonces))
	}
}

// A refusal that stays is not asked about again.
func TestRefusalsThatStay(t *testing.T) {
	asked := 0
	s := answering(t, http.MethodPut, func(r *http.Request) *http.Response {
		asked++
		return answer(r, http.StatusForbidden, "AccessDenied")
	})
	err := store.CreateBytes(t.Context(), s, "k", nil)
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") || asked != 1 {
		t.Errorf("%v after %d", err, asked)
	}
}

// A server that gives the whole object for a stretch of it is found out.
func TestAnS3WithoutStretches(t *testing.T) {
	s := answering(t, http.MethodGet, func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		_, _ = io.WriteString(w, "0123456789")
		return w.Result()
	})
	for _, offset := range []int64{1, 3} {
		if _, err := s.Open(t.Context(), "k", offset, 4); err == nil || !strings.Contains(err.Error(), "no stretches") {
			t.Errorf("%v", err)
		}
	}
	// Of one that is asked for from its beginning no more is given than was asked for.
	in := must.Get(s.Open(t.Context(), "k", 0, 4))(t)
	defer in.Close()
	if got, err := io.ReadAll(in); err != nil || string(got) != "0123" {
		t.Errorf("%q, %v", got, err)
	}
}

// ledger counts the readers that were not closed.
type ledger struct {
	*storetest.Memory
	open int
}

type entry struct {
	io.ReadCloser
	of *ledger
}

func (l *ledger) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	in, err := l.Memory.Open(ctx, name, offset, length)
	if err == nil {
		l.open++
		in = &entry{in, l}
	}
	return in, err
}

func (e *entry) Close() error {
	e.of.open--
	return e.ReadCloser.Close()
}

// ReadAll and ReadJournal close the readers that they open.
func TestReadersAreClosed(t *testing.T) {
	l := &ledger{Memory: storetest.NewMemory()}
	must.Do(t, store.CreateBytes(t.Context(), l, "j.000000", []byte("1\n2\n")))
	for _, most := range []int64{3, 4} {
		if _, err := store.ReadAll(t.Context(), l, "j.000000", most); (err == nil) != (most == 4) {
			t.Errorf("%d bytes: %v", most, err)
		}
	}
	expect(t, journal(t, l), "1", "2")
	if err := first(store.ReadJournal(t.Context(), l, "j")); err != nil {
		t.Error(err)
	}
	if l.open != 0 {
		t.Errorf("%d are open", l.open)
	}
}

// The longest names that may be.
func TestCheckName(t *testing.T) {
	segment := strings.Repeat("x", store.MaxSegment)
	longest := strings.Repeat(segment+"/", 3) + strings.Repeat("x", store.MaxName-3*len(segment)-3)
	for name, ok := range map[string]bool{segment: true, segment + "x": false, longest: true, longest + "x": false} {
		if err := store.CheckName(name); (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
}

// A folder keeps what is promised of a store.
func TestFolder(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, filepath.Join(t.TempDir(), "not", "made"))
	})
}

// S3 keeps what is promised of a store, as the same bytes do in a folder.
func TestS3(t *testing.T) {
	server := s3test.Start(t)
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, server.Address(prefixOf(t)))
	})
}

// What tests use in the place of a store keeps what is promised of one.
func TestMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store { return storetest.NewMemory() })
}

// open opens a store for a test, without connections of others.
func open(t testing.TB, address string, opts ...store.Option) store.Store {
	t.Helper()
	s := must.Get(store.Open(t.Context(), address, opts...))(t)
	t.Cleanup(func() {
		if err := store.Close(s); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

// prefixOf returns the prefix of a test's objects, apart from those of others.
func prefixOf(t testing.TB) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
}

// A folder that is gone, or of which only the mount point is left, is away. No object counts as missing there, and
// nothing is written outside the store. When the folder is back all of it is there, whatever its number.
func TestAFolderThatIsUnmounted(t *testing.T) {
	ctx, root := t.Context(), filepath.Join(t.TempDir(), "home")
	s := open(t, root)
	must.Do(t, store.CreateBytes(ctx, s, "a/k", []byte("words")))
	if _, err := store.ReadAll(ctx, s, "a/none", 10); !errors.Is(err, store.ErrMissing) {
		t.Fatal(err)
	}
	must.Do(t, os.Rename(root, root+".mounted"))
	away := func(what string) {
		t.Helper()
		_, read := store.ReadAll(ctx, s, "a/k", 10)
		_, _, identified := s.Identity(ctx, "a/k")
		_, appended := store.Append(ctx, s, "a/l")
		var listed error
		for _, err := range s.List(ctx, "a/", "") {
			listed = err
		}
		for verb, err := range map[string]error{
			"read": read, "identified": identified, "appended": appended, "listed": listed, "created": store.CreateBytes(ctx, s, "a/m", nil),
			"deleted": s.Delete(ctx, "a/k"),
		} {
			if !errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrMissing) {
				t.Errorf("%s: %s: %v", what, verb, err)
			}
		}
	}
	away("gone")
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made anew: %v", err)
	}
	must.Do(t, os.Mkdir(root, 0o700))
	away("empty")
	must.Do(t, errors.Join(os.Remove(root), os.Rename(root+".mounted", root)))
	if got := names(t, s, ""); len(got) != 1 || read(t, s, "a/k") != "words" {
		t.Errorf("back: %q", got)
	}
	copied := root + ".copy"
	must.Do(t, errors.Join(os.CopyFS(copied, os.DirFS(root)), os.RemoveAll(root), os.Rename(copied, root)))
	if err := store.CreateBytes(ctx, s, "a/m", nil); err != nil || read(t, s, "a/k") != "words" {
		t.Errorf("with another number: %v", err)
	}
}
