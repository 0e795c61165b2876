package command

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
)

// theirHosts stands for the hosts of those names: a proxy that lets nobody out and answers
// for each of them, with a certificate of an authority that nobody else trusts. It gives the
// variables with which a process meets them.
func theirHosts(t *testing.T, answer http.Handler, hosts ...string) (env []string) {
	t.Helper()
	theirs := httptest.NewUnstartedServer(answer)
	certificate, authority := certificateFor(t, hosts)
	theirs.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	theirs.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that a process leaves as it ends
	theirs.StartTLS()
	t.Cleanup(theirs.Close)
	var tunnels sync.WaitGroup
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, port, _ := net.SplitHostPort(r.Host); r.Method != http.MethodConnect || port != "443" || !strings.Contains(" "+strings.Join(hosts, " ")+" ", " "+host+" ") {
			t.Errorf("%s %s: nobody is there", r.Method, r.Host)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		tunnel(t, w, theirs.Listener.Addr().String(), &tunnels)
	}))
	t.Cleanup(func() { theirs.CloseClientConnections(); proxy.Close(); tunnels.Wait() })
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + authority}
}

// certificateFor is one that is its own authority, and the file of that.
func certificateFor(t *testing.T, hosts []string) (tls.Certificate, string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nobody's authority"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key))(t)
	file := filepath.Join(t.TempDir(), "authority.pem")
	must.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// theirPlace holds the parts of vendors' addresses that the usual variables give.
var theirPlace = catalog.Place{Region: "eu-west-1", Project: "p", Location: "europe-west4", Resource: "me"}

func theirPlaceVariables() []string {
	return []string{"AWS_REGION=eu-west-1", "GOOGLE_CLOUD_PROJECT=p", "GOOGLE_CLOUD_LOCATION=europe-west4", "AZURE_RESOURCE_NAME=me", "DATABRICKS_HOST=https://me.cloud.databricks.com/"}
}

// served answers as a vendor's dialect does below whatever path is the vendor's own. It
// counts what bears that in the header.
func served(t *testing.T, v *catalog.Vendor, header, bears string, calls *atomic.Int64) http.Handler {
	entry, _ := all.Named(v.Dialect.Name())
	cfg := sim.Fast()
	if cfg.Face = entry.Face; v.Dialect.Name() == "openai" {
		cfg.Face = nil
	}
	server := sim.New(cfg, clockwork.NewRealClock())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get(header); !strings.HasPrefix(got, bears) {
			t.Errorf("%s: %s: %q, want %q", v.Name, header, got, bears)
		}
		calls.Add(1)
		r.Header.Set("X-Api-Key", "k") // for faces that know no signature
		if v.InBody != "" {            // the face wants the model that the address names
			body, _ := io.ReadAll(r.Body)
			if !bytes.Contains(body, []byte(v.InBody)) {
				t.Errorf("%s: %s is not in %s", v.Name, v.InBody, body)
			}
			body = bytes.Replace(body, []byte(v.InBody), []byte(`"model":"m"`), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		for door, path := range map[string]string{":rawPredict": "/v1/messages", "/chat/completions": "/v1/chat/completions", "/v1/messages": "/v1/messages", "/responses": "/v1/responses"} {
			if strings.HasSuffix(r.URL.Path, door) {
				r.URL.Path = path
			}
		}
		server.ServeHTTP(w, r)
	})
}

func theirHost(t *testing.T, v *catalog.Vendor) string {
	t.Helper()
	base, err := v.Address(theirPlace)
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	u := must.Get(url.Parse(base))(t)
	return u.Hostname()
}

const threePrompts = `{"prompt":"one"}` + "\n" + `{"prompt":"two"}` + "\n" + `{"prompt":"three"}` + "\n"

const threeReranks = `{"query":"one","documents":["a"]}` + "\n" + `{"query":"two","documents":["a"]}` + "\n" + `{"query":"three","documents":["a"]}` + "\n"

// A vendor's name and a key in its usual variable are all that a prompt file needs; what an
// address has in it is found in the usual variables, too.
func TestVendorAndKeyAreEnough(t *testing.T) {
	prompts, reranks := writeLines(t, threePrompts), writeLines(t, threeReranks)
	for _, v := range catalog.Rows() {
		if !strings.HasPrefix(v.Base, "https://") || v.Auth == catalog.Google {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			in, says := prompts, "Simulated answer "
			if v.Dialect.Name() == "cohere" { // which has no chats
				in, says = reranks, ""
			}
			for _, variable := range v.Keys {
				header, prefix := v.Header(variable, "the-key-0123456789")
				env := theirHosts(t, served(t, &v, header, prefix+"the-key-0123456789", &calls), theirHost(t, &v))
				env = append(append(env, theirPlaceVariables()...), variable+"=the-key-0123456789")
				out := filepath.Join(t.TempDir(), "out.jsonl")
				said := runs(t, env, in, "-o", out, "--provider", v.Name, "--model", "m", "--text", "always")
				for _, line := range resultsOf(t, out) {
					if !strings.HasPrefix(line.Headrace.Text, says) || !strings.HasPrefix(line.Headrace.Lane, v.Name+"/") {
						t.Errorf("%s: %q in %q: %s", variable, line.Headrace.Text, line.Headrace.Lane, said)
					}
				}
			}
			if got, want := calls.Load(), int64(3*len(v.Keys)); got != want {
				t.Errorf("%d calls, want %d", got, want)
			}
		})
	}
}

// Azure's own variable for an address is enough, whichever of Azure's names is in it. It is
// not that of Claude on Azure, whose key does not go there.
func TestAzureEndpointIsEnough(t *testing.T) {
	in := writeLines(t, threePrompts)
	for _, name := range []string{"azure", "azure-deployments"} {
		v, _ := catalog.Named(name)
		var calls atomic.Int64
		env := theirHosts(t, served(t, &v, "Api-Key", "the-key-0123456789", &calls), "me.cognitiveservices.azure.com")
		out := filepath.Join(t.TempDir(), "out.jsonl")
		said := runs(t, append(env, "AZURE_OPENAI_ENDPOINT=https://me.cognitiveservices.azure.com/", "AZURE_OPENAI_API_KEY=the-key-0123456789"), in, "-o", out, "--provider", name, "--model", "m")
		if calls.Load() != 3 || said != "" {
			t.Errorf("%s: %d calls: %s", name, calls.Load(), said)
		}
	}
	env := []string{"AZURE_OPENAI_ENDPOINT=https://me.openai.azure.com/", "ANTHROPIC_FOUNDRY_API_KEY=the-key-0123456789"}
	if code, said := runsTo(t, env, in, "-o", "out.jsonl", "--provider", "azure-anthropic", "--model", "m"); code != exit.Usage || !strings.Contains(said, "--resource") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Bedrock is called with a signature where there is no key but AWS's three variables.
func TestSignedCalls(t *testing.T) {
	in := writeLines(t, threePrompts)
	for _, name := range []string{"bedrock", "bedrock-anthropic"} {
		v, _ := catalog.Named(name)
		var calls atomic.Int64
		signed := fmt.Sprintf("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0123456/%s/eu-west-1/%s/aws4_request, SignedHeaders=", time.Now().UTC().Format("20060102"), v.Service)
		env := append(theirHosts(t, served(t, &v, "Authorization", signed[:40], &calls), theirHost(t, &v)), theirPlaceVariables()...)
		out := filepath.Join(t.TempDir(), "out.jsonl")
		runs(t, append(env, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE0123456", "AWS_SECRET_ACCESS_KEY=secret0123456789", "AWS_SESSION_TOKEN=session0123456789"),
			in, "-o", out, "--provider", name, "--model", "anthropic.claude-v1:0")
		if results := resultsOf(t, out); len(results) != 3 || calls.Load() != 3 {
			t.Errorf("%s: %d results of %d calls", name, len(results), calls.Load())
		}
	}
}

// Vertex is called with tokens of the account whose file Google's variable names: one for
// all calls, from the place that the file names, for the project that it names if no other is
// told. Calls are counted to the quota project of the variable, else to that of the file.
func TestTokensOfAnAccount(t *testing.T) {
	for _, c := range []struct{ provider, flag, variable, project, counted string }{
		{"vertex", "", "", "p", "of-the-file"},
		{"vertex", "", "example.com:of-the-variable", "p", "example.com:of-the-variable"},
		{"vertex", "example.com:told", "", "example.com:told", "of-the-file"},
		{"vertex-openai", "", "", "p", "of-the-file"},
		{"vertex-anthropic", "", "", "p", "of-the-file"},
	} {
		tokensOfAnAccount(t, c.provider, c.flag, c.variable, c.project, c.counted)
	}
}

func tokensOfAnAccount(t *testing.T, name, flag, variable, project, counted string) {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	account := must.Get(json.Marshal(map[string]string{
		"type": "service_account", "client_email": "me@p.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token", "project_id": "p", "quota_project_id": "of-the-file",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}))(t)
	file := writeLines(t, string(account))
	v, _ := catalog.Named(name)
	var calls, tokens atomic.Int64
	models := served(t, &v, "Authorization", "Bearer ya29.the-token-1", &calls)
	env := theirHosts(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "oauth2.googleapis.com" {
			says(http.StatusOK, "application/json", fmt.Sprintf(`{"access_token":"ya29.the-token-%d","expires_in":3599,"token_type":"Bearer"}`, tokens.Add(1)))(w, r)
			return
		}
		if got := r.Header.Get("X-Goog-User-Project"); got != counted || !strings.HasPrefix(r.URL.Path, "/v1/projects/"+project+"/locations/europe-west4/") {
			t.Errorf("%s, counted to %q, want projects %s and %q", r.URL.Path, got, project, counted)
		}
		models.ServeHTTP(w, r)
	}), "oauth2.googleapis.com", theirHost(t, &v))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{writeLines(t, threePrompts), "-o", out, "--provider", name, "--model", "gemini-x"}
	if flag != "" {
		args = append(args, "--project", flag)
	}
	said := runs(t, append(env, "GOOGLE_CLOUD_LOCATION=europe-west4", "GOOGLE_APPLICATION_CREDENTIALS="+file, "GOOGLE_CLOUD_QUOTA_PROJECT="+variable), args...)
	if results := resultsOf(t, out); len(results) != 3 || calls.Load() != 3 || tokens.Load() != 1 {
		t.Errorf("%s: %d results of %d calls with %d tokens: %s", name, len(results), calls.Load(), tokens.Load(), said)
	}
}

// SageMaker is called with a token in a file: no variable of its own is known.
func TestTokenInAFile(t *testing.T) {
	v, _ := catalog.Named("sagemaker")
	var calls atomic.Int64
	env := append(theirHosts(t, served(t, &v, "Authorization", "Bearer the-token-0123456789", &calls), theirHost(t, &v)), theirPlaceVariables()...)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	runs(t, env, writeLines(t, threePrompts), "-o", out, "--provider", "sagemaker", "--model", "my-endpoint", "--api-key-file", writeLines(t, "the-token-0123456789\n"))
	if results := resultsOf(t, out); len(results) != 3 || calls.Load() != 3 {
		t.Errorf("%d results of %d calls", len(results), calls.Load())
	}
}

// OpenAI gets the organisation and the project of its variables.
func TestOrganisationOfOpenAI(t *testing.T) {
	v, _ := catalog.Named("openai")
	var calls, named atomic.Int64
	answers := served(t, &v, "Authorization", "Bearer the-key-0123456789", &calls)
	env := theirHosts(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("OpenAI-Organization") == "org-1" && r.Header.Get("OpenAI-Project") == "proj_1" {
			named.Add(1)
		}
		answers.ServeHTTP(w, r)
	}), theirHost(t, &v))
	runs(t, append(env, "OPENAI_API_KEY=the-key-0123456789", "OPENAI_ORG_ID=org-1", "OPENAI_PROJECT_ID= proj_1 "),
		writeLines(t, threePrompts), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--model", "m")
	if calls.Load() != 3 || named.Load() != 3 {
		t.Errorf("%d of %d calls name both", named.Load(), calls.Load())
	}
}

// Groq's requests are a day's, from the first header on: what is left of them is called for,
// and then the run stops, though its headers look as those of others who count by the minute.
func TestRequestsOfGroqAreADays(t *testing.T) {
	const day, left = 8_640_000, 30 // a hundred come back each second, to a run that waits for them
	v, _ := catalog.Named("groq")
	var calls atomic.Int64
	answers := served(t, &v, "Authorization", "Bearer the-key-0123456789", &calls)
	env := theirHosts(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Load() + 1
		w.Header().Set("X-Ratelimit-Limit-Requests", strconv.Itoa(day))
		w.Header().Set("X-Ratelimit-Remaining-Requests", strconv.FormatInt(max(0, left-n), 10))
		w.Header().Set("X-Ratelimit-Reset-Requests", (24*time.Hour - time.Duration(max(0, left-n))*10*time.Millisecond).String())
		answers.ServeHTTP(w, r)
	}), theirHost(t, &v))
	in := writeLines(t, strings.Repeat(threePrompts, 40))
	code, said := runsTo(t, append(env, "GROQ_API_KEY=the-key-0123456789"), in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--provider", "groq", "--model", "m", "-c", "1")
	if code != exit.Stopped || calls.Load() > left+2 || calls.Load() < left-2 || !strings.Contains(said, "requests") {
		t.Errorf("exit code %d after %d calls: %s", code, calls.Load(), said)
	}
}
