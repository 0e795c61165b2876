package bus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
		return
	}
	goleak.VerifyTestMain(m)
}

const childVariable = "HEADRACE_TEST_HUB"

// patience bounds the wait of a test for what must come: the busiest machine is faster.
const patience = 60 * time.Second

// longFetch outlasts a stall of the machine: a chunk that comes after the end of its fetch comes again only after AckWait.
const longFetch = 10 * time.Second

// tokenForTests is the token of hubs and clients in tests.
const tokenForTests = "a-token-for-tests-only"

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startHub starts a hub that ends with the test. What it complains of is in the test's log.
func startHub(t testing.TB, change func(*HubConfig)) *Hub {
	t.Helper()
	config := HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests}
	if change != nil {
		change(&config)
	}
	hub := must.Get(StartHub(config))(t)
	t.Cleanup(hub.Shutdown)
	return hub
}

// connect joins a bus until the test ends.
func connect(t testing.TB, url, name string, change ...func(*Config)) *Bus {
	t.Helper()
	config := Config{URL: url, Name: name, AckWait: time.Second}
	for _, c := range change {
		c(&config)
	}
	b := must.Get(Connect(testContext(t), config))(t)
	t.Cleanup(b.Close)
	return b
}

// patiently has nothing given out twice, however busy the machine is.
func patiently(c *Config) { c.AckWait = time.Hour }

// eventually waits for something to become true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// take waits for the next message of a feed.
func take[T any](t testing.TB, f *Feed[T]) T {
	t.Helper()
	select {
	case v, ok := <-f.C:
		if !ok {
			t.Fatal("the feed has ended")
		}
		return v
	case <-time.After(patience):
		t.Fatal("no message came")
	}
	panic("not reached")
}

func mustQueue(t testing.TB, b *Bus, w Work, body string) {
	t.Helper()
	ctx, tries, fresh := testContext(t), 0, false
	offer := func() error { return b.Offer(ctx, w.Job) }
	queue := func() (err error) {
		tries++
		fresh, err = b.Queue(ctx, w, []byte(body))
		return err
	}
	must.Do(t, answered(ctx, offer))
	if err := answered(ctx, queue); err != nil || !fresh && tries == 1 {
		t.Fatalf("queue %v: fresh %v, %v", w, fresh, err)
	}
}

// answered asks until there is an answer: a machine that stalls may miss it. The context ends a hub that never answers.
func answered(ctx context.Context, ask func() error) (err error) {
	for {
		if err = ask(); !errors.Is(err, ErrNoAnswer) || ctx.Err() != nil {
			return err
		}
	}
}

func mustFetch(t testing.TB, b *Bus, k Kind) *Delivery {
	t.Helper()
	return mustFetchOf(t, b, k, "j")
}

func mustFetchOf(t testing.TB, b *Bus, k Kind, job string) *Delivery {
	t.Helper()
	ctx := testContext(t)
	for {
		d, ok, err := b.Fetch(ctx, k, job, longFetch)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrNoAnswer)) {
			t.Fatal(err)
		}
		if ok {
			return d
		}
	}
}

func chunk(n int) Work { return Work{Kind: Chunks, Job: "j", Name: fmt.Sprint(n)} }

// childMain is this test binary as a hub of its own, to be killed and frozen.
func childMain() {
	var reported hubReport
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &reported); err != nil {
		fmt.Println("error:", err)
		os.Exit(2)
	}
	hub, err := StartHub(HubConfig{
		Dir: reported.Dir, Listen: reported.Listen, Token: reported.Token, Route: reported.Route, Peers: reported.Peers, Name: reported.Name, TLS: reported.TLS,
		TLSDir: reported.TLSDir, Say: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(2)
	}
	fmt.Println("join:", hub.JoinURL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // it ends with the test, however that ends
	hub.Shutdown()
}

// hubReport are the parts of a HubConfig that a process can be told.
type hubReport struct {
	Dir, Listen, Token, Route, Name, TLSDir string
	Peers                                   []string
	TLS                                     bool
}

// A process is a hub in a process of its own.
type process struct {
	t      testing.TB
	config HubConfig
	cmd    *exec.Cmd
	stderr *strings.Builder
	url    string
}

// spawn starts a hub in a process that ends with the test.
func spawn(t testing.TB, config HubConfig) *process {
	p := &process{t: t, config: config}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	c := p.config
	data := must.Get(json.Marshal(hubReport{
		Dir: c.Dir, Listen: c.Listen, Token: c.Token, Route: c.Route, Name: c.Name, TLSDir: c.TLSDir, Peers: c.Peers, TLS: c.TLS,
	}))(p.t)
	p.stderr = &strings.Builder{}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(data))
	p.cmd.Stderr = p.stderr
	must.Get(p.cmd.StdinPipe())(p.t)
	out := must.Get(p.cmd.StdoutPipe())(p.t)
	must.Do(p.t, p.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "join: ")
	if !ok {
		p.kill()
		p.t.Fatalf("the hub did not start: %q %v\n%s", line, err, p.stderr)
	}
	p.url = url
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// freePorts are free just now. Somebody may take one before we do; then the hub says so and the test is begun anew.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close() // all at the end, so that they are different
		addresses[i] = l.Addr().String()
	}
	return addresses
}

// spawnThree starts a cluster of three processes.
func spawnThree(t testing.TB) (hubs []*process, url string) {
	t.Helper()
	routes, dir := freePorts(t, 3), t.TempDir()
	tls := filepath.Join(dir, "tls")
	must.Get(MakeAuthority(tls, time.Now()))(t)
	for i, route := range routes {
		hubs = append(hubs, spawn(t, HubConfig{
			Dir: filepath.Join(dir, strconv.Itoa(i)), Listen: "127.0.0.1:0", Token: tokenForTests,
			Route: route, Peers: routes, TLS: true, TLSDir: tls,
		}))
	}
	a := must.Get(ParseAddress(hubs[0].url))(t)
	for _, hub := range hubs[1:] {
		other := must.Get(ParseAddress(hub.url))(t)
		a.Hosts = append(a.Hosts, other.Hosts...)
	}
	return hubs, a.String()
}

// Three hubs go on with any one of them killed. Acknowledged work is there, and a returning hub catches up.
func TestThreeHubs(t *testing.T) {
	t.Parallel()
	hubs, url := spawnThree(t)
	b := connect(t, url, "w1")
	ctx := t.Context() // each step has its own patience
	eventually(t, "the three have found each other", func() bool { return b.Ensure(ctx) == nil })
	if _, err := b.Queued(ctx, Chunks, "j"); !errors.Is(err, ErrGone) {
		t.Errorf("counted before it is offered: %v", err)
	}
	eventually(t, "chunks are offered", func() bool { return b.Offer(ctx, "j") == nil })
	info, err := b.settingsOf(ctx, b.workStream())
	if err != nil || info.Config.Replicas != 3 {
		t.Fatalf("%d replicas, %v", info.Config.Replicas, err)
	}
	var revision uint64
	for n, victim := range hubs {
		eventually(t, "chunks are queued", func() bool {
			_, err := b.Queue(ctx, chunk(n), nil)
			return err == nil
		})
		eventually(t, "the lease is written", func() bool {
			content, err := b.ReadLease(ctx, time.Second)
			if err != nil {
				return false
			}
			if content.Revision < revision {
				t.Fatalf("revision %d, and it was %d before", content.Revision, revision)
			}
			revision, err = b.UpdateLease(ctx, fmt.Appendf(nil, "%d", n), content.Revision, time.Second)
			return err == nil
		})
		victim.kill()
		eventually(t, "two of three have all chunks", func() bool { // one that has just begun to lead counts from nothing
			queued, err := b.Queued(ctx, Chunks, "j")
			return err == nil && queued == n+1
		})
		eventually(t, "two of three write", func() bool {
			fresh, err := b.Queue(ctx, chunk(n), nil)
			if err == nil && fresh {
				t.Fatalf("chunk %d was forgotten", n)
			}
			return err == nil
		})
		victim.start()
	}
	for range hubs {
		eventually(t, "work is given out", func() bool {
			d, ok, err := b.Fetch(ctx, Chunks, "j", time.Second)
			return err == nil && ok && d.Done(ctx) == nil
		})
	}
}
