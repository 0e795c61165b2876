package tests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// A foreign server is NATS' own, as an organisation may have it, with a folder for what it needs.
type foreign struct {
	*fleet
	at string // host:port
}

// A cluster works on a NATS server that is there already, however that lets clients in.
func TestAServerOfSomebodyElse(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(built.dir, "nats-server")
	build := exec.Command("go", "build", "-o", bin, "github.com/nats-io/nats-server/v2")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, c := range map[string]func(*foreign) (config, line string){
		"user and password": (*foreign).byPassword, "nkey": (*foreign).byNKey, "creds": (*foreign).byCreds, "certificates": (*foreign).byCertificate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const items = 50
			f := &foreign{unstarted(t, plan{inFlight: 16, provider: slow}), freePort(t)}
			f.command = command(t)
			config, line := c(f)
			path := f.write("nats.conf", fmt.Sprintf("listen: %s\njetstream: {store_dir: %q}\n%s", f.at, filepath.Join(f.dir, "jetstream"), config))
			server := newProcess(t, f.dir, "nats-server", bin, "-c", path)
			server.start()
			f.dials(server)
			line += "&space=test" // two clusters on one server need two
			worker := f.process("worker", "worker", "--join", line, "--store", f.store, "--base-url", f.judge.base("w"))
			worker.start()
			q := writePrompts(t, f.dir, "foreign", items)
			output := filepath.Join(f.dir, "out.jsonl")
			customer := f.process("customer", "submit", q.path, "-o", output, "--cluster", line, "--store", f.store, "--base-url", f.judge.base("c"), "--wait")
			customer.start()
			if code := f.finishes(customer); code != 0 || linesOf(t, output) != items {
				t.Errorf("exit %d, %d results", code, linesOf(t, output))
			}
			if text, code := f.run("cluster", "check", "--cluster", line, "--store", f.store); code != 0 {
				t.Errorf("cluster check: exit %d: %s", code, text)
			}
			if text, code := f.run("jobs", "ls", "--cluster", "nats://"+f.at, "--store", f.store); code == 0 {
				t.Errorf("without what it wants the server lets in: %s", text)
			}
			f.calledOnce(items)
		})
	}
}

// dials waits until a server listens.
func (f *foreign) dials(server *process) {
	f.t.Helper()
	for server.running() {
		if conn, err := net.Dial("tcp", f.at); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.t.Fatal("the server does not listen")
}

func (f *foreign) write(name, text string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// byPassword lets in a user who may do no more than the documentation says.
func (f *foreign) byPassword() (config, line string) {
	const may = `["test.>", "$KV.test-keeper.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"]`
	return "authorization: {users: [{user: headrace, password: \"s3cret\", permissions: {publish: " + may + ", subscribe: " + may + "}}]}\n", "nats://headrace:s3cret@" + f.at + "?"
}

func (f *foreign) byNKey() (config, line string) {
	_, seed, public := f.key(nkeys.CreateUser)
	return fmt.Sprintf("authorization: {users: [{nkey: %s}]}\n", public), "nats://" + f.at + "?nkey=" + f.write("user.nk", seed)
}

// byCreds is a server of accounts that an operator has signed, as nsc makes them.
func (f *foreign) byCreds() (config, line string) {
	f.t.Helper()
	operator, _, operatorKey := f.key(nkeys.CreateOperator)
	_, _, systemKey := f.key(nkeys.CreateAccount)
	account, _, accountKey := f.key(nkeys.CreateAccount)
	_, seed, userKey := f.key(nkeys.CreateUser)
	signed := func(c jwt.Claims, by nkeys.KeyPair) string {
		text, err := c.Encode(by)
		if err != nil {
			f.t.Fatal(err)
		}
		return text
	}
	o := jwt.NewOperatorClaims(operatorKey)
	o.SystemAccount = systemKey
	a := jwt.NewAccountClaims(accountKey)
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	creds, err := jwt.FormatUserConfig(signed(jwt.NewUserClaims(userKey), account), []byte(seed))
	if err != nil {
		f.t.Fatal(err)
	}
	config = fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: {%s: %s, %s: %s}\n",
		signed(o, operator), systemKey, signed(jwt.NewAccountClaims(systemKey), operator), accountKey, signed(a, operator))
	return config, "nats://" + f.at + "?creds=" + f.write("user.creds", string(creds))
}

func (f *foreign) key(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, seed, public string) {
	f.t.Helper()
	pair, err := create()
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := pair.Seed()
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return pair, string(text), public
}

// byCertificate is a server that shows a certificate of a private authority, and wants one of it.
func (f *foreign) byCertificate() (config, line string) {
	f.t.Helper()
	ca, caKey := f.certificate("ca", nil, nil)
	f.certificate("server", ca, caKey)
	f.certificate("client", ca, caKey)
	at := func(name string) string { return filepath.Join(f.dir, name) }
	config = fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\n", at("server.pem"), at("server.key"), at("ca.pem"))
	return config, "tls://" + f.at + "?ca=" + at("ca.pem") + "&cert=" + at("client.pem") + "&key=" + at("client.key")
}

// certificate writes one and its key; without a signer it is an authority.
func (f *foreign) certificate(name string, by *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if by == nil {
		by, signer, c.IsCA, c.KeyUsage, c.ExtKeyUsage = c, key, true, x509.KeyUsageCertSign, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), signer)
	if err != nil {
		f.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	pemOf := func(kind string, der []byte) string {
		var b strings.Builder
		_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}) // a builder takes all
		return b.String()
	}
	f.write(name+".pem", pemOf("CERTIFICATE", der))
	f.write(name+".key", pemOf("PRIVATE KEY", private))
	c, err = x509.ParseCertificate(der)
	if err != nil {
		f.t.Fatal(err)
	}
	return c, key
}
