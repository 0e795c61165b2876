//go:build linux

package tests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/provider/sim"
)

// A plan says how large a fleet is and what it works on.
type plan struct {
	hubs, workers int
	inFlight      int // of each worker
	provider      sim.Config
	links         bool     // each worker reaches the hub by a link of its own
	bucket        bool     // the home, and what is asked, are in a bucket
	limitFlags    []string // what the user knows of the limit, as flags of each worker
}

// A fleet is a store, hubs and workers, and the provider that they call.
type fleet struct {
	t       *testing.T
	plan    plan
	command string   // the file that all of them are started from
	env     []string // besides this process's own
	dir     string
	home    string         // the folder in which the store lies
	store   string         // its address: the folder, or a bucket
	bucket  *s3test.Server // nil: it is a folder
	judge   *judge
	late    lateness
	hubs    []*hub
	workers []*worker
	audit   audit
	strikes map[harm]int
	given   *questionnaire // the job that was given last
	// savesLate says that the store may keep an answer waiting for longer than unsaved.
	savesLate bool
}

// A hub is a process, its folder, and the file in which it says where it is.
type hub struct {
	*process
	dir, ready string
	struck     bool
}

// A worker is a process, and its way to the hub if it has one of its own.
type worker struct {
	*process
	link   *link
	struck bool
}

// Short times, so that a storm of minutes sees many of them. All are the workers' flags.
const (
	// ackWait is after how long a silent worker's chunk is given to another.
	ackWait = 4 * time.Second
	// lease is the keeper's T with one hub; with three it is twice as long, as in SCALE.
	lease = 3 * time.Second
	// saveEvery is the time after which an answer is in a bucket, if the bucket is there.
	saveEvery = 2 * time.Second
	// comeUp bounds how long a process may take to say that it is there, on a machine that
	// has much else to do.
	comeUp = time.Minute
)

// newFleet starts hubs and workers, and returns when the hubs serve.
func newFleet(t *testing.T, p plan) *fleet {
	t.Helper()
	f := unstarted(t, p)
	f.command = command(t)
	f.launch()
	return f
}

func unstarted(t *testing.T, p plan) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{
		t: t, plan: p, dir: dir, home: filepath.Join(dir, "home"), store: filepath.Join(dir, "home"), strikes: map[harm]int{},
		judge: newJudge(t, p.provider), late: race.Late(t, watchEvery), audit: audit{asked: map[string]int{}},
	}
	if p.bucket {
		f.inBucket()
	}
	if err := os.MkdirAll(f.home, 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// inBucket puts the store into a bucket of the fleet's own.
func (f *fleet) inBucket() {
	f.t.Helper()
	f.bucket, f.savesLate = s3test.StartBeside(f.t), true
	f.env = append(f.env, f.bucket.Environment()...)
	f.home, f.store = f.bucket.Folder("home"), f.bucket.Address("home")
}

func (f *fleet) launch() {
	f.t.Helper()
	f.newHubs()
	f.eachHubServes()
	for n := range f.plan.workers {
		f.workers = append(f.workers, f.newWorker(fmt.Sprintf("w%d", n+1)))
	}
	for _, w := range f.workers {
		w.start()
	}
}

// process is one of the command's.
func (f *fleet) process(name string, args ...string) *process {
	p := newProcess(f.t, f.dir, name, append([]string{f.command}, args...)...)
	p.env, p.cwd = append(p.env, f.env...), f.dir
	return p
}

// newHubs are one, or three that know each other by a token of theirs and by their routes.
func (f *fleet) newHubs() {
	f.t.Helper()
	if f.plan.hubs < 3 {
		f.hubs = []*hub{f.newHub(1)}
		return
	}
	routes := []string{freePort(f.t), freePort(f.t), freePort(f.t)}
	for i, route := range routes {
		h := f.newHub(i+1, "--route", route, "--peers", strings.Join(routes, ","), "--name", fmt.Sprint("hub", i+1))
		if err := errors.Join(os.MkdirAll(h.dir, 0o700), os.WriteFile(filepath.Join(h.dir, "token"), []byte(sharedToken), 0o600)); err != nil {
			f.t.Fatal(err)
		}
		f.hubs = append(f.hubs, h)
	}
}

// sharedToken is the token that three hubs must have before they first start: each would make its own.
const sharedToken = "the-three-hubs-of-the-storms"

func (f *fleet) newHub(n int, flags ...string) *hub {
	name := fmt.Sprint("hub", n)
	h := &hub{dir: filepath.Join(f.dir, name), ready: filepath.Join(f.dir, name+".ready")}
	args := []string{"hub", "--listen", freePort(f.t), "--store", f.store, "--dir", h.dir, "--ready-file", h.ready}
	h.process = f.process(name, append(args, flags...)...)
	return h
}

// eachHubServes starts the hubs together, as three wait for each other.
func (f *fleet) eachHubServes() {
	f.t.Helper()
	for _, h := range f.hubs {
		h.start()
	}
	for _, h := range f.hubs {
		h.serves()
	}
}

// serves waits until a hub has said where it is, and gives the URL.
func (h *hub) serves() string {
	h.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < comeUp; <-ticker.C {
		if text, err := os.ReadFile(h.ready); err == nil {
			return strings.TrimSpace(string(text))
		}
		if !h.running() {
			break
		}
	}
	h.t.Fatalf("%s does not serve", h.name)
	return ""
}

// newWorker is one that calls the judge under its name.
func (f *fleet) newWorker(name string, flags ...string) *worker {
	f.t.Helper()
	w, join := &worker{}, f.url()
	if f.plan.links {
		w.link = newLink(f.t, hostOf(join))
		join = through(join, w.link)
	}
	args := []string{
		"worker", "--join", join, "--store", f.store, "--base-url", f.judge.base(name),
		"-c", fmt.Sprint(f.plan.inFlight), "--progress", "plain", "--ack-wait", ackWait.String(), "--lease", f.term().String(),
	}
	if f.bucket != nil {
		args = append(args, "--save-every", saveEvery.String())
	}
	w.process = f.process(name, append(append(args, f.plan.limitFlags...), flags...)...)
	return w
}

// url is the line to join by, with all hubs in it: each says only its own.
func (f *fleet) url() string {
	var before, after string
	hosts := make([]string, len(f.hubs))
	for i, h := range f.hubs {
		before, hosts[i], after = lineParts(h.serves())
	}
	return before + strings.Join(hosts, ",") + after
}

// lineParts splits a line to join by into the text before its hosts, the hosts, and the rest.
func lineParts(line string) (before, hosts, after string) {
	start := strings.Index(line, "://") + len("://")
	if at := strings.LastIndex(line, "@"); at >= 0 {
		start = at + 1
	}
	end := strings.IndexAny(line[start:], "/?")
	if end < 0 {
		end = len(line) - start
	}
	return line[:start], line[start : start+end], line[start+end:]
}

// through is a line by way of a link.
func through(line string, l *link) string {
	before, _, after := lineParts(line)
	return before + l.address() + after
}

func hostOf(line string) string {
	_, host, _ := lineParts(line)
	return host
}

// term is the keeper's lease: three hubs take some seconds until one leads.
func (f *fleet) term() time.Duration {
	if f.plan.hubs == 3 {
		return 2 * lease
	}
	return lease
}

// customer submits a file, waits for its end and fetches the results. The job's name is its
// first line on standard output.
func (f *fleet) customer(q *questionnaire, name string, flags ...string) (p *process, output string) {
	f.t.Helper()
	f.given = q
	for text, n := range q.asked {
		f.audit.asked[text] += n
	}
	output = filepath.Join(f.dir, name+".jsonl")
	args := []string{
		"submit", f.inputOf(q), "-o", output, "--cluster", f.url(), "--store", f.store, "--wait",
		"--base-url", f.judge.base("customer"), "--limit-name", "org",
	}
	p = f.process(name, append(args, flags...)...)
	p.start()
	return p, output
}

// inputOf returns the address at which the fleet finds the questions.
func (f *fleet) inputOf(q *questionnaire) string {
	f.t.Helper()
	if f.bucket == nil {
		return q.path
	}
	text, err := os.ReadFile(q.path)
	if err != nil {
		f.t.Fatal(err)
	}
	name := "prompts/" + filepath.Base(q.path)
	f.bucket.Put(f.t, name, text)
	return f.bucket.Address(name)
}

// run asks one question of the command, and gives what it answers on standard output.
func (f *fleet) run(args ...string) (stdout string, code int) {
	f.t.Helper()
	p := f.process(fmt.Sprintf("%s-%s", args[0], ports.next()), args...) // a log of its own
	p.start()
	code = p.ends(usually(comeUp, comeUp+lengthSaid())) // one process makes of a long storm's file what a cluster does, and faster
	text, err := os.ReadFile(p.said)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text), code
}
