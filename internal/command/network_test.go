package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
)

// authority issues certificates that no system trusts, into files.
type authority struct {
	t    *testing.T
	dir  string
	file string // its own certificate
	own  *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one. Certificates are of now, and of this machine and a host that is nowhere.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	about := &x509.Certificate{Subject: pkix.Name{CommonName: "a company's own"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.own, a.key = about, nil
	der, key := a.issue(about)
	var err error
	if a.own, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.key, a.file = key, a.write("authority.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) issue(about *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	about.SerialNumber, about.NotBefore, about.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if der, err = x509.CreateCertificate(rand.Reader, about, a.own, &key.PublicKey, signer); err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

func (a *authority) write(name, kind string, der []byte) (path string) {
	a.t.Helper()
	path = filepath.Join(a.dir, name)
	must.Do(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// pair issues a certificate with its key, and the files of both.
func (a *authority) pair(name string, usage x509.ExtKeyUsage, addresses ...net.IP) (pair tls.Certificate, certificate, key string) {
	a.t.Helper()
	der, private := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{nowhere}, IPAddresses: append(addresses, net.IPv4(127, 0, 0, 1)),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	})
	raw := must.Get(x509.MarshalPKCS8PrivateKey(private))(a.t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", raw)
}

// nowhere is a host that only a proxy finds.
const nowhere = "api.headrace.invalid"

// secure serves https with a certificate of the authority, and answers well. It counts calls, and
// those by HTTP/2.
func (a *authority) secure(clients *x509.CertPool, addresses ...net.IP) (server *httptest.Server, calls, second *atomic.Int64) {
	a.t.Helper()
	calls, second = new(atomic.Int64), new(atomic.Int64)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); r.ProtoMajor == 2 {
			second.Add(1)
		}
		says(http.StatusOK, "application/json", goodAnswer)(w, r)
	}))
	if len(addresses) > 0 {
		_ = server.Listener.Close()
		var err error
		if server.Listener, err = net.Listen("tcp", net.JoinHostPort(addresses[0].String(), "0")); err != nil {
			a.t.Fatal(err)
		}
	}
	own, _, _ := a.pair("server", x509.ExtKeyUsageServerAuth, addresses...)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		server.TLS.ClientCAs, server.TLS.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they must
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server, calls, second
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.own)
	return pool
}

// asks runs three prompts in this process.
func asks(t *testing.T, env map[string]string, args ...string) (code int, said string) {
	t.Helper()
	in := writeLines(t, strings.Repeat(`{"prompt":"hi"}`+"\n", 3))
	code, _, said = inWorld(t, nil, env, append([]string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--model", "m", "-c", "2"}, args...)...)
	return code, said
}

// A server with a certificate of an authority of one's own is trusted with --ca-file, by flag,
// variable and file, over HTTP/2 as others; without it, and with another's, the advice is that flag.
func TestAuthorityOfOnesOwn(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	server, calls, second := a.secure(nil)
	config := filepath.Join(t.TempDir(), "run.yaml")
	must.Do(t, os.WriteFile(config, []byte("ca-file: "+a.file+"\n"), 0o600))
	both := filepath.Join(t.TempDir(), "both.pem")
	must.Do(t, os.WriteFile(both, []byte("# two of them\n"+read(t, other.file)+"\n"+read(t, a.file)), 0o600))
	for _, args := range [][]string{{"--ca-file", a.file}, {"--config", config}, {"--ca-file", both}} {
		if code, said := asks(t, nil, append(args, "--base-url", server.URL)...); code != exit.OK {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	if code, said := asks(t, map[string]string{"HEADRACE_CA_FILE": a.file}, "--base-url", server.URL); code != exit.OK {
		t.Errorf("exit code %d: %s", code, said)
	}
	if n := calls.Load(); n != 12 || second.Load() != n {
		t.Errorf("%d calls, %d of them by HTTP/2", n, second.Load())
	}
	for _, args := range [][]string{nil, {"--ca-file", other.file}} {
		code, said := asks(t, nil, append(args, "--base-url", server.URL)...)
		if code != exit.Stopped || !strings.Contains(said, "certificate signed by unknown authority") || !strings.Contains(said, "if you trust the certificate, name the file of its authority with --ca-file") {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
}

// The authorities of the system stay trusted.
func TestAuthoritiesAreAdded(t *testing.T) {
	a := newAuthority(t)
	got := must.Get(account.AuthoritiesIn(a.file))(t)
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Skip(err)
	}
	if want.AddCert(a.own); !got.Equal(want) || got.Equal(a.pool()) && !want.Equal(a.pool()) {
		t.Error("these are not the system's and the file's")
	}
}

// A server that asks for a certificate is shown the client's. Without one, or with one of another
// authority, the run stops at once, and the flags are named.
func TestClientCertificate(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	server, calls, second := a.secure(a.pool())
	_, certificate, key := a.pair("client", x509.ExtKeyUsageClientAuth)
	_, wrong, wrongKey := other.pair("stranger", x509.ExtKeyUsageClientAuth)
	base := []string{"--base-url", server.URL, "--ca-file", a.file}
	for _, args := range [][]string{nil, {"--client-cert", wrong, "--client-key", wrongKey}} {
		code, said := asks(t, nil, append(args, base...)...)
		if code != exit.Stopped || !strings.Contains(said, "the server wants a certificate that it trusts: check --client-cert and --client-key") {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	if calls.Load() > 0 {
		t.Fatalf("%d calls without the certificate", calls.Load())
	}
	config := filepath.Join(t.TempDir(), "run.yaml")
	must.Do(t, os.WriteFile(config, []byte("client-cert: "+certificate+"\nclient-key: "+key+"\n"), 0o600))
	for _, args := range [][]string{{"--client-cert", certificate, "--client-key", key}, {"--config", config}} {
		if code, said := asks(t, nil, append(args, base...)...); code != exit.OK {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	if n := calls.Load(); n != 6 || second.Load() != n {
		t.Errorf("%d calls, %d of them by HTTP/2", n, second.Load())
	}
	if err := os.Chmod(key, 0o644); err != nil { //nolint:gosec // it is what is tested
		t.Fatal(err)
	}
	if code, said := asks(t, nil, append(base, "--client-cert", certificate, "--client-key", key)...); code != exit.OK || !strings.Contains(said, "others can read the key file "+key) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A file that is not there, cannot be read or is another than the flag wants ends the command with
// 2 before any call, with what helps. A certificate goes with its key.
func TestNetworkFilesThatAreRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	server, calls, _ := a.secure(nil)
	_, certificate, key := a.pair("client", x509.ExtKeyUsageClientAuth)
	_, _, strangers := other.pair("stranger", x509.ExtKeyUsageClientAuth)
	file := filesIn(t, a.dir)
	whole := read(t, a.file)
	der, _ := pem.Decode([]byte(whole))
	empty, text, cut, binary := file("empty", ""), file("text", "no certificate"), file("cut", whole+whole[:len(whole)/2]), file("der", string(der.Bytes))
	damaged := file("damaged", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der.Bytes[:100]})))
	encrypted := file("encrypted", string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})))
	long, unreadable := file("long", strings.Repeat("x", 4<<20+1)), file("unreadable", whole)
	must.Do(t, os.Chmod(unreadable, 0))
	rows := []struct{ args, says string }{
		{"--ca-file {}/not-there", "--ca-file: {}/not-there: there is no such file: check its name"},
		{"--ca-file {}", "--ca-file: {}: it is not a regular file"},
		{"--ca-file " + empty, "--ca-file: {}/empty: there is no certificate in it: name a file in PEM form"},
		{"--ca-file " + text, "--ca-file: {}/text: there is no certificate in it"},
		{"--ca-file " + binary, "--ca-file: {}/der: there is no certificate in it"},
		{"--ca-file " + key, "--ca-file: {}/client.key: there is no certificate in it"},
		{"--ca-file " + cut, "--ca-file: {}/cut: certificate 2 is damaged or cut off"},
		{"--ca-file " + damaged, "--ca-file: {}/damaged: certificate 1 is damaged: x509:"},
		{"--ca-file " + long, "--ca-file: {}/long: it has more than 4194304 bytes"},
		{"--client-cert " + certificate, "--client-cert needs --client-key: the file with its private key"},
		{"--client-key " + key, "--client-key needs --client-cert: the file with its certificate"},
		{"--client-cert {}/not-there --client-key " + key, "--client-cert: {}/not-there: there is no such file"},
		{"--client-cert " + certificate + " --client-key {}/not-there", "--client-key: {}/not-there: there is no such file"},
		{"--client-cert " + text + " --client-key " + key, "--client-cert: {}/text: there is no certificate in it"},
		{"--client-cert " + key + " --client-key " + certificate, "--client-cert: {}/client.key: there is no certificate in it"},
		{"--client-cert " + certificate + " --client-key " + certificate, "--client-key: {}/client.pem: there is no private key in it"},
		{"--client-cert " + certificate + " --client-key " + encrypted, "--client-key: {}/encrypted: the key is encrypted: decrypt it first"},
		{"--client-cert " + certificate + " --client-key " + strangers, "private key does not match public key"},
	}
	if os.Geteuid() != 0 { // root may read everything
		rows = append(rows, struct{ args, says string }{"--ca-file " + unreadable, "--ca-file: {}/unreadable: permission denied: check its permissions"})
	}
	here := func(s string) string { return strings.ReplaceAll(s, "{}", a.dir) }
	for _, c := range rows {
		code, said := asks(t, nil, append(strings.Fields(here(c.args)), "--base-url", server.URL)...)
		if code != exit.Usage || !strings.Contains(said, here(c.says)) {
			t.Errorf("%s: exit code %d: %s", c.args, code, said)
		}
	}
	if calls.Load() > 0 {
		t.Errorf("%d calls", calls.Load())
	}
}

// connectProxy is a proxy with a user and a password that leads every host to one server.
type connectProxy struct {
	*httptest.Server
	asked, let atomic.Int64
}

func newConnectProxy(t *testing.T, to net.Addr, user string) *connectProxy {
	t.Helper()
	p := &connectProxy{}
	var tunnels sync.WaitGroup
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if user != "" && r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		p.let.Add(1)
		tunnel(t, w, to.String(), &tunnels)
	}))
	t.Cleanup(func() { p.Close(); tunnels.Wait() })
	return p
}

// throughProxy runs three prompts in a process of its own: a process reads the variables of proxies once.
func throughProxy(t *testing.T, env []string, args ...string) (code int, said string) {
	t.Helper()
	in := writeLines(t, strings.Repeat(`{"prompt":"hi"}`+"\n", 3))
	return runsTo(t, env, append([]string{in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--model", "m", "-c", "2"}, args...)...)
}

// Calls go through the proxy of HTTPS_PROXY, with its user and password, to a server of an authority
// of one's own, and by HTTP/2 there. A password that is missing or wrong stops the run, and the
// proxy is named; no password is repeated.
func TestProxyWithAPassword(t *testing.T) {
	a := newAuthority(t)
	server, calls, second := a.secure(nil)
	const user = "alice:open%20sesame%25-42"
	proxy := newConnectProxy(t, server.Listener.Addr(), "alice:open sesame%-42")
	host := strings.TrimPrefix(proxy.URL, "http://")
	args := []string{"--base-url", "https://" + nowhere + "/v1", "--ca-file", a.file}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		code, said := throughProxy(t, []string{name + "=http://" + user + "@" + host}, args...)
		if code != exit.OK {
			t.Fatalf("%s: exit code %d: %s", name, code, said)
		}
	}
	if calls.Load() != 6 || second.Load() != 6 || proxy.let.Load() == 0 {
		t.Errorf("%d calls, %d by HTTP/2, %d tunnels", calls.Load(), second.Load(), proxy.let.Load())
	}
	for _, who := range []string{"", "alice:wrong-password-42@"} {
		code, said := throughProxy(t, []string{"HTTPS_PROXY=http://" + who + host}, args...)
		if code != exit.Stopped || !strings.Contains(said, "the proxy at "+host+" answers 407") || !strings.Contains(said, "check the proxy in HTTPS_PROXY") || strings.Contains(said, "-42") {
			t.Errorf("%q: exit code %d: %s", who, code, said)
		}
	}
	if calls.Load() != 6 {
		t.Errorf("%d calls came past the proxy", calls.Load()-6)
	}
}

// NO_PROXY exempts a host: it is called directly, by its own address.
func TestNoProxy(t *testing.T) {
	addresses := must.Get(net.InterfaceAddrs())(t)
	var own net.IP // loopback is never asked of a proxy
	for _, one := range addresses {
		if ip, is := one.(*net.IPNet); is && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			own = ip.IP
		}
	}
	if own == nil {
		t.Skip("this machine has no address but its own")
	}
	a := newAuthority(t)
	server, calls, _ := a.secure(nil, own)
	proxy := newConnectProxy(t, server.Listener.Addr(), "")
	args := []string{"--base-url", server.URL, "--ca-file", a.file}
	if code, said := throughProxy(t, []string{"HTTPS_PROXY=" + proxy.URL}, args...); code != exit.OK || proxy.let.Load() == 0 {
		t.Fatalf("exit code %d through %d tunnels: %s", code, proxy.let.Load(), said)
	}
	before := proxy.asked.Load()
	if code, said := throughProxy(t, []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=" + own.String()}, args...); code != exit.OK || proxy.asked.Load() != before {
		t.Errorf("exit code %d, the proxy was asked %d times: %s", code, proxy.asked.Load()-before, said)
	}
	if calls.Load() != 6 {
		t.Errorf("%d calls", calls.Load())
	}
}

// Such an address ends the command before any call.
func TestProxyAddressEndsTheCommand(t *testing.T) {
	code, said := asks(t, map[string]string{"HTTPS_PROXY": "http://alice:pa%ss-42@proxy:3128"}, "--base-url", "https://127.0.0.1:9")
	if code != exit.Usage || !strings.Contains(said, "HTTPS_PROXY is not the address of a proxy") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// tunnel carries what comes on a connection to a server, and back, until either ends.
func tunnel(t *testing.T, w http.ResponseWriter, to string, tunnels *sync.WaitGroup) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n") // who is gone asks for nothing
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	}
	tunnels.Go(func() { carry(far, near) })
	tunnels.Go(func() { carry(near, far) })
}
