//go:build linux

package tests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Three hubs are made as the documentation says, without Kubernetes: the first is started once, its folder goes to all three, and
// the line that one prints leads to all of them when it names them. One of them may die then.
func TestThreeHubsByHand(t *testing.T) {
	t.Parallel()
	const items = 300
	f := unstarted(t, plan{hubs: 3, inFlight: 16, provider: slow})
	f.command = command(t)
	first := filepath.Join(f.dir, "first")
	listen := func() string { return everywhere(freePort(t)) }
	ready := filepath.Join(f.dir, "first.ready")
	once := &hub{process: f.process("first", "hub", "--store", f.store, "--listen", listen(), "--dir", first, "--ready-file", ready), dir: first, ready: ready}
	once.start()
	once.serves()
	once.signal(syscall.SIGTERM)
	if code := once.ends(comeUp); code != 0 {
		t.Fatalf("the first hub ends with %d", code)
	}
	if err := os.RemoveAll(filepath.Join(first, "jetstream")); err != nil {
		t.Fatal(err)
	}
	var routes []string
	for range 3 {
		routes = append(routes, freePort(t))
	}
	for n, name := range []string{"a", "b", "c"} {
		dir := filepath.Join(f.dir, name)
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		h := &hub{dir: dir, ready: filepath.Join(f.dir, name+".ready")}
		h.process = f.process(name, "hub", "--store", f.store, "--listen", listen(), "--route", everywhere(routes[n]), "--peers", strings.Join(routes, ","),
			"--name", name, "--advertise", "127.0.0.1", "--dir", dir, "--ready-file", h.ready)
		f.hubs = append(f.hubs, h)
	}
	f.eachHubServes()
	if line := f.url(); !strings.Contains(line, "ca=sha256:") {
		t.Fatalf("the line names no authority: %s", line)
	}
	w := f.newWorker("worker")
	f.workers = append(f.workers, w)
	w.start()
	customer, output := f.customer(writePrompts(t, f.dir, "three", items), "out")
	<-f.judge.after(items / 10)
	f.hubs[1].struck = true
	f.hubs[1].kill()
	if code := f.finishes(customer); code != 0 || linesOf(t, output) != items {
		t.Errorf("exit %d, %d results", code, linesOf(t, output))
	}
}

// One of three hubs is not ready as long as it is alone. The three are, and all lines to join by have the same token, which
// the hubs get as the documentation says. Later two of them are ready without the third.
func TestOneOfThreeHubsIsNotReady(t *testing.T) {
	t.Parallel()
	f := unstarted(t, plan{provider: sim.Config{}})
	f.command = command(t)
	shared := filepath.Join(f.dir, "shared")
	if text, code := f.run("hub", "init", shared); code != 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	routes := []string{freePort(t), freePort(t), freePort(t)}
	for i, route := range routes {
		f.hubs = append(f.hubs, f.newHub(i+1, "--route", route, "--peers", strings.Join(routes, ","), "--tls-dir", shared))
	}
	first := f.hubs[0]
	first.start()
	first.isNotReady()
	f.hubs[1].start()
	f.hubs[2].start()
	before, _, _ := lineParts(first.serves())
	for _, h := range f.hubs[1:] {
		if other, _, _ := lineParts(h.serves()); other != before {
			t.Errorf("%s has another token than the first", h.name)
		}
	}
	for _, h := range f.hubs {
		h.kill()
		if err := os.Remove(h.ready); err != nil {
			t.Fatal(err)
		}
	}
	first.start()
	first.isNotReady()
	f.hubs[1].start()
	first.serves()
	f.hubs[1].serves()
}

// isNotReady watches a hub for longer than one that serves takes to say so.
func (h *hub) isNotReady() {
	h.t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(h.ready); err == nil {
			h.t.Fatalf("it is ready alone: %s", text)
		}
	}
	if !h.running() {
		h.t.Fatalf("it has ended: %s", h.lastWords())
	}
}

// Two hubs on one store would have every chunk worked on twice. The store names the hub of its queue: a worker, a job and
// a check that come by another one are refused with words, and nothing is called twice. A command names another hub; then
// the workers of the first end by themselves, and the second hub does all jobs.
func TestASecondHubIsRefusedUntilItTakesOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 1, inFlight: 8, provider: sim.Config{Latency: sim.Latency{Median: 150 * time.Millisecond}}})
	q := writePrompts(t, f.dir, "first", 800)
	customer, _ := f.customer(q, "first", "--chunk-lines", "20")
	f.begun(40, customer)

	first := f.hubs
	second := f.newHub(2)
	second.start()
	second.serves()
	f.hubs = []*hub{second}
	refused := f.newWorker("w2")
	refused.start()
	if code := refused.ends(comeUp); code != 2 || !says(refused.process, "another hub") || !says(refused.process, "take-over") {
		t.Errorf("a worker of a second hub ends with %d: %s", code, refused.lastWords())
	}
	other := writePrompts(t, f.dir, "second", 100)
	late, _ := f.customer(other, "refused")
	if code := late.ends(comeUp); code != 2 || !says(late, "another hub") {
		t.Errorf("a job for a second hub ends with %d: %s", code, late.lastWords())
	}
	if text, code := f.run("cluster", "check", "--cluster", f.url()); code != 1 || !strings.Contains(text, "another hub") {
		t.Errorf("check ends with %d: %s", code, text)
	}

	f.begun(f.judge.asked()+40, customer)
	if text, code := f.run("cluster", "take-over", "--cluster", f.url()); code != 0 {
		t.Fatalf("take-over ends with %d: %s", code, text)
	}
	old := f.workers[0]
	old.struck = true
	if code := old.ends(comeUp); code != 2 || !says(old.process, "another hub") {
		t.Errorf("the worker of the first hub ends with %d: %s", code, old.lastWords())
	}
	before := f.twice()
	f.workers = []*worker{f.newWorker("w3")}
	f.workers[0].start()
	rest, _ := f.customer(other, "second")
	if code := f.finishes(rest); code != 0 {
		t.Errorf("the job of the second hub ends with %d", code)
	}
	if code := f.finishes(customer); code != 0 {
		t.Errorf("the job of the first hub ends with %d", code)
	}
	if after := f.twice(); !maps.Equal(before, after) {
		t.Errorf("%d prompts were asked twice before the second hub took over, and %d in all", len(before), len(after))
	}
	f.hubs = append(f.hubs, first...)
}

// says reports whether a process has said something.
func says(p *process, text string) bool { return strings.Contains(string(p.lastWords()), text) }

// twice are the prompts that were asked more than once.
func (f *fleet) twice() map[string]int {
	all := map[string]int{}
	for _, c := range f.judge.book() {
		all[c.prompt]++
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n < 2 })
	return all
}

// A foreign server is NATS' own, as an organisation may have it, with a folder for what it needs.
type outsider struct {
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
	for name, c := range map[string]func(*outsider) (config, line string){
		"user and password": (*outsider).byPassword, "nkey": (*outsider).byNKey, "creds": (*outsider).byCreds, "certificates": (*outsider).byCertificate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const items = 50
			f := &outsider{unstarted(t, plan{inFlight: 16, provider: slow}), freePort(t)}
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
func (f *outsider) dials(server *process) {
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

func (f *outsider) write(name, text string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// byPassword lets in a user who may do no more than the documentation says.
func (f *outsider) byPassword() (config, line string) {
	const may = `["test.>", "$KV.test-keeper.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"]`
	return "authorization: {users: [{user: headrace, password: \"s3cret\", permissions: {publish: " + may + ", subscribe: " + may + "}}]}\n", "nats://headrace:s3cret@" + f.at + "?"
}

func (f *outsider) byNKey() (config, line string) {
	_, seed, public := f.key(nkeys.CreateUser)
	return fmt.Sprintf("authorization: {users: [{nkey: %s}]}\n", public), "nats://" + f.at + "?nkey=" + f.write("user.nk", seed)
}

// byCreds is a server of accounts that an operator has signed, as nsc makes them.
func (f *outsider) byCreds() (config, line string) {
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

func (f *outsider) key(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, seed, public string) {
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
func (f *outsider) byCertificate() (config, line string) {
	f.t.Helper()
	ca, caKey := f.certificate("ca", nil, nil)
	f.certificate("server", ca, caKey)
	f.certificate("client", ca, caKey)
	at := func(name string) string { return filepath.Join(f.dir, name) }
	config = fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\n", at("server.pem"), at("server.key"), at("ca.pem"))
	return config, "tls://" + f.at + "?ca=" + at("ca.pem") + "&cert=" + at("client.pem") + "&key=" + at("client.key")
}

// certificate writes one and its key; without a signer it is an authority.
func (f *outsider) certificate(name string, by *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
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
