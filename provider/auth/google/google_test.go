package google_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/auth/google"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clientSecret = "client-secret-0123456789"
	refreshToken = "refresh-token-0123456789"
)

// office gives out tokens as Google's does, to whom it knows.
type office struct {
	*httptest.Server
	key    *rsa.PrivateKey
	closed chan struct{} // of each connection, once it is

	mu     sync.Mutex
	asked  int
	status int // of a failure; 0: none
	says   string
	quotes bool // a failure quotes what it was sent
}

func newOffice(t *testing.T) *office {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	o := &office{key: key, closed: make(chan struct{}, 100)}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(o.serve))
	o.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			o.closed <- struct{}{}
		}
	}
	o.Start()
	t.Cleanup(o.Close)
	return o
}

func (o *office) fail(status int, says string, quotes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.says, o.quotes = status, says, quotes
}

func (o *office) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	w.Header().Set("Content-Type", "application/json")
	said := o.says
	if o.quotes {
		said = strings.ReplaceAll(said, "QUOTE", r.FormValue("assertion")+r.FormValue("refresh_token")+" "+r.FormValue("client_secret"))
	}
	status := o.status
	if status == 0 {
		if err := o.known(r); err != nil {
			status, said = 400, `{"error":"invalid_grant","error_description":"`+err.Error()+`"}`
		}
	}
	if status != 0 {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(said))
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"ya29.token-%d","expires_in":3599,"token_type":"Bearer"}`, o.asked)
}

// known checks who asks: a user by his refresh token, a service by its signature, and what for.
func (o *office) known(r *http.Request) error {
	if r.FormValue("grant_type") == "refresh_token" {
		if r.FormValue("refresh_token") != refreshToken || r.FormValue("client_secret") != clientSecret {
			return errors.New("who is this user?")
		}
		return nil
	}
	parts := strings.Split(r.FormValue("assertion"), ".")
	if len(parts) != 3 || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return errors.New("no assertion")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&o.key.PublicKey, crypto.SHA256, hash[:], signature); err != nil {
		return err
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Iss, Scope, Aud string
		Exp             int64
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	if claims.Scope != google.Scope || claims.Iss != "batch@p-1.iam.gserviceaccount.com" || claims.Exp < time.Now().Unix() {
		return fmt.Errorf("claims %+v", claims)
	}
	return nil
}

// service is the file of a service account that this office knows.
func (o *office) service(t *testing.T) string {
	t.Helper()
	der := must.Get(x509.MarshalPKCS8PrivateKey(o.key))(t)
	return text(t, map[string]string{
		"type": "service_account", "project_id": "p-1", "client_email": "batch@p-1.iam.gserviceaccount.com", "private_key_id": "k-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": o.URL,
	})
}

// user is the file that gcloud leaves for a person.
func (o *office) user(t *testing.T) string {
	t.Helper()
	return text(t, map[string]string{
		"type": "authorized_user", "client_id": "c-1", "client_secret": clientSecret, "refresh_token": refreshToken, "token_uri": o.URL,
	})
}

func text(t *testing.T, v map[string]string) string {
	t.Helper()
	b := must.Get(json.Marshal(v))(t)
	return string(b)
}

// credentials makes that file the default credentials.
func credentials(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "credentials.json")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	return path
}

func findCredentials(t *testing.T) (*auth.Tokens, string) {
	t.Helper()
	found := must.Get(google.Find(t.Context(), nil))(t)
	return found.Tokens, found.Project
}

func apply(t *testing.T, s *auth.Tokens) (*http.Request, error) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/", http.NoBody))(t)
	return r, s.Apply(t.Context(), r, nil)
}

// Service accounts and users get a token for all of the cloud, which is in use until it is
// refused, and then another one.
func TestFind(t *testing.T) {
	o := newOffice(t)
	for _, tt := range []struct{ name, file, project string }{
		{"service account", o.service(t), "p-1"},
		{"user", o.user(t), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			credentials(t, tt.file)
			before := o.asked
			s, project := findCredentials(t)
			if o.asked != before || project != tt.project {
				t.Errorf("project %q; %d tokens before the first call", project, o.asked-before)
			}
			for i := range 4 {
				r, err := apply(t, s)
				if want := fmt.Sprintf("Bearer ya29.token-%d", before+1+i/2); err != nil || r.Header.Get("Authorization") != want {
					t.Fatalf("%q, not %q: %v", r.Header.Get("Authorization"), want, err)
				}
				if i == 1 && !s.Refused(r) {
					t.Error("there is another token")
				}
			}
			for range 2 { // no connection is kept for the next hour
				<-o.closed
			}
		})
	}
}

// The credentials name the project to which calls are counted, separately from the one to which
// they belong.
func TestQuotaProject(t *testing.T) {
	o := newOffice(t)
	for file, want := range map[string]string{
		o.user(t): "",
		strings.Replace(o.user(t), "{", `{"quota_project_id":"example.com:counted",`, 1): "example.com:counted",
	} {
		credentials(t, file)
		if found, err := google.Find(t.Context(), nil); err != nil || found.QuotaProject != want || found.Project != "" {
			t.Errorf("%+v, want %q: %v", found, want, err)
		}
	}
}

// Credentials that were changed are what the next token is of.
func TestCredentialsAreReadAgain(t *testing.T) {
	o := newOffice(t)
	path := credentials(t, o.user(t))
	s, _ := findCredentials(t)
	r, err := apply(t, s)
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(path, []byte(strings.ReplaceAll(o.user(t), refreshToken, "another-token-0123")), 0o600))
	if _, err := apply(t, s); err != nil || !s.Refused(r) {
		t.Fatal(err)
	}
	_, err = apply(t, s)
	if !errors.Is(err, provider.Unauthorized) || !strings.Contains(err.Error(), "who is this user?") {
		t.Errorf("%v", err)
	}
}

// A refresh that fails says why in the server's words, of the kind that it is, without any
// secret.
func TestRefreshFails(t *testing.T) {
	o := newOffice(t)
	files := map[string]string{"service account": o.service(t), "user": o.user(t)}
	for name, file := range files {
		for _, tt := range []struct {
			status int
			says   string
			kind   provider.Kind
			want   string
		}{
			{400, `{"error":"invalid_grant","error_description":"Account has been deleted: QUOTE"}`, provider.Unauthorized, "400 invalid_grant: no fresh token: Account has been deleted: [redacted]"},
			{401, `{"error":"invalid_client","error_description":"The OAuth client was not found."}`, provider.Unauthorized, "401 invalid_client: no fresh token: The OAuth client was not found."},
			{403, `{"error":{"code":403,"message":"Permission denied: QUOTE","status":"PERMISSION_DENIED"}}`, provider.Unauthorized, "Permission denied: [redacted]"},
			{404, `<html>not here QUOTE</html>`, provider.Unauthorized, "404"},
			{429, `{"error":"slow down"}`, provider.Throttled, "429"},
			{500, `{"error":"internal_failure"}`, provider.Server, "500"},
			{503, ``, provider.Overloaded, "503"},
		} {
			t.Run(fmt.Sprintf("%s %d", name, tt.status), func(t *testing.T) {
				credentials(t, file)
				o.fail(tt.status, tt.says, true)
				defer o.fail(0, "", false)
				s, _ := findCredentials(t)
				_, err := apply(t, s)
				var e *provider.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Status != tt.status || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%v", err)
				}
				shown := fmt.Sprintf("%v %+v %s", err, e, e.Body)
				for _, secret := range []string{clientSecret, refreshToken, "eyJ"} {
					if strings.Contains(shown, secret) {
						t.Errorf("%q is in %s", secret, shown)
					}
				}
			})
		}
	}
}

// An office that cannot be reached is a fault of the way, not of the credentials.
func TestOfficeIsClosed(t *testing.T) {
	o := newOffice(t)
	for _, file := range []string{o.service(t), o.user(t)} {
		credentials(t, file)
		s, _ := findCredentials(t)
		o.Close()
		if _, err := apply(t, s); !errors.Is(err, provider.TransportFault) {
			t.Errorf("%v", err)
		}
	}
}

// What are no credentials is said before any call, without what is in the file.
func TestNoCredentials(t *testing.T) {
	for says, file := range map[string]string{
		"of an application":       `{"installed":{"client_id":"c","client_secret":"` + clientSecret + `","redirect_uris":["http://localhost"]}}`,
		"unknown credential type": `{"type":"none","client_secret":"` + clientSecret + `"}`,
		"missing 'type'":          `{}`,
		"invalid character":       clientSecret,
	} {
		credentials(t, file)
		found, err := google.Find(t.Context(), nil)
		if found != (google.Found{}) || !errors.Is(err, provider.Misconfigured) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), clientSecret) {
			t.Errorf("%s: %v", says, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
	if _, err := google.Find(t.Context(), nil); !errors.Is(err, provider.Misconfigured) {
		t.Errorf("%v", err)
	}
}

// On a machine of Google's its own account is used.
func TestMachine(t *testing.T) {
	var paths sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths.Store(r.URL.Path, r.FormValue("scopes"))
		w.Header().Set("Metadata-Flavor", "Google")
		switch {
		case r.Header.Get("Metadata-Flavor") != "Google":
			w.WriteHeader(http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, "/project/project-id"):
			_, _ = w.Write([]byte("p-2"))
		case strings.HasSuffix(r.URL.Path, "/service-accounts/default/token"):
			_, _ = w.Write([]byte(`{"access_token":"ya29.machine","expires_in":3599,"token_type":"Bearer"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir()) // where gcloud leaves its files
	t.Setenv("APPDATA", t.TempDir())
	s, project := findCredentials(t)
	r, err := apply(t, s)
	if err != nil || project != "p-2" || r.Header.Get("Authorization") != "Bearer ya29.machine" {
		t.Errorf("%q of %q: %v", r.Header.Get("Authorization"), project, err)
	}
	if scopes, _ := paths.Load("/computeMetadata/v1/instance/service-accounts/default/token"); scopes != google.Scope {
		t.Errorf("scopes %v", scopes)
	}
}

// Tokens are fetched from a server of an authority that the caller trusts, as behind a company's
// proxy that has its own certificates; without that authority there is none.
func TestTokensOfATrustedAuthority(t *testing.T) {
	o := newOffice(t)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(o.serve))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	secure.StartTLS()
	t.Cleanup(secure.Close)
	o.URL = secure.URL
	credentials(t, o.user(t))
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	for trusted, cfg := range map[bool]*tls.Config{true: {RootCAs: pool, MinVersion: tls.VersionTLS12}, false: nil} {
		found := must.Get(google.Find(t.Context(), cfg))(t)
		if r, err := apply(t, found.Tokens); (err == nil) != trusted || (r.Header.Get("Authorization") != "") != trusted {
			t.Errorf("%v: %v", trusted, err)
		}
	}
}
