//go:build linux

package tests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeEnv makes this test's binary play a part, so that what kills and freezes can be tried on
// processes whose every step is known.
const fakeEnv = "HEADRACE_TESTS_PART"

// fakes are the parts.
var fakes = map[string]func(args []string){"caller": fakeCaller, "cluster": fakeCluster}

// fake is a process that plays a part.
func fake(t *testing.T, name, part string, args ...string) *process {
	t.Helper()
	p := newProcess(t, t.TempDir(), name, append([]string{os.Args[0]}, args...)...)
	p.env = append(p.env, fakeEnv+"="+part)
	return p
}

// fakeCaller asks a base URL for ever, so many questions at once, each question once.
func fakeCaller(args []string) {
	base := args[0]
	lanes, _ := strconv.Atoi(args[1]) // none asks nothing, and the test that waits for a call says so
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for n := 0; ; n++ {
				ask(base, fmt.Sprintf("question %d of lane %d", n, lane))
			}
		})
	}
	all.Wait()
}

func ask(base, prompt string) {
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, prompt)
	resp, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// The fake cluster plays hub, worker, customer and the one process, by the simplest means that
// keep the promises. Claims and results are files, and the hub answers any process that checks
// its presence. The harness is tested with it, and a test can make it break a promise.

// faultEnv names the promise that is broken.
const faultEnv = "HEADRACE_TESTS_FAULT"

const (
	buysTwice  = "buys twice"  // takes over what a living one has in hand
	goesOn     = "goes on"     // calls without the hub
	losesOne   = "loses one"   // leaves an item out of the output
	turnsRound = "turns round" // writes the output in another order
)

func broken(promise string) bool { return os.Getenv(faultEnv) == promise }

func fakeCluster(args []string) {
	parts := map[string]func(fakeArgs){"hub": fakeHub, "worker": fakeWorker, "submit": fakeCustomer, "run": fakeOneProcess}
	parts[args[0]](fakeArgs(args[1:]))
}

type fakeArgs []string

// value of a flag; what is not given is "".
func (a fakeArgs) value(flag string) string {
	if at := slices.Index(a, flag); at >= 0 {
		return a[at+1]
	}
	return ""
}

// fakeHub answers each line with a line.
func fakeHub(a fakeArgs) {
	l, err := net.Listen("tcp", a.value("--listen"))
	must(err)
	must(os.WriteFile(a.value("--ready-file"), []byte("nats://"+a.value("--listen")+"\n"), 0o600))
	for {
		conn, err := l.Accept()
		must(err)
		go func() { _, _ = io.Copy(conn, conn) }()
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A fakeWorkerState is what one fake worker knows.
type fakeWorkerState struct {
	name, home, base string       // the name is another in each life
	heard            atomic.Int64 // when it sent what the hub answered last
}

const (
	fakeLanes = 4
	fakeBeat  = 50 * time.Millisecond
	// fakePatience is the time for which the hub may be silent; fakeDeath is that for another worker.
	fakePatience = time.Second
	fakeDeath    = 2 * time.Second
)

func fakeWorker(a fakeArgs) {
	base := a.value("--base-url")
	w := &fakeWorkerState{name: fmt.Sprintf("%s-%d", strings.Split(base, "/")[4], os.Getpid()), home: a.value("--store"), base: base}
	w.live()
	go w.beat()
	go w.hear(a.value("--join"))
	var all sync.WaitGroup
	for range fakeLanes {
		all.Go(w.work)
	}
	all.Wait()
}

// beat says that it is alive.
func (w *fakeWorkerState) beat() {
	for ; ; time.Sleep(fakeBeat) {
		w.live()
	}
}

func (w *fakeWorkerState) live() {
	must(os.WriteFile(filepath.Join(w.home, "alive-"+w.name), nil, 0o600))
}

// hear asks the hub whether it is there.
func (w *fakeWorkerState) hear(join string) {
	u, err := url.Parse(join)
	must(err)
	for ; ; time.Sleep(fakeBeat) {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			continue
		}
		for answers := bufio.NewReader(conn); ; time.Sleep(fakeBeat) {
			sent := time.Now()
			_ = conn.SetDeadline(sent.Add(fakePatience))
			_, err := conn.Write([]byte("?\n"))
			if _, err2 := answers.ReadString('\n'); errors.Join(err, err2) != nil {
				break
			}
			w.heard.Store(sent.UnixNano())
		}
		_ = conn.Close()
	}
}

func (w *fakeWorkerState) mayCall() bool {
	return broken(goesOn) || time.Since(time.Unix(0, w.heard.Load())) < fakePatience
}

// work goes through the questions again and again, until all have answers.
func (w *fakeWorkerState) work() {
	for ; ; time.Sleep(fakeBeat) {
		text, err := os.ReadFile(filepath.Join(w.home, "questions"))
		if err != nil {
			continue
		}
		var questions []string
		must(json.Unmarshal(text, &questions))
		for i, q := range questions {
			w.item(i, q)
		}
	}
}

func (w *fakeWorkerState) item(i int, question string) {
	result := filepath.Join(w.home, fmt.Sprint("result-", i))
	if _, err := os.Stat(result); err == nil || !w.claims(i) {
		return
	}
	for !w.mayCall() {
		time.Sleep(fakeBeat)
	}
	ask(w.base, question)
	temporary := fmt.Sprint(result, ".", w.name)
	must(os.WriteFile(temporary, []byte(question), 0o600))
	_ = os.Link(temporary, result)
}

// claims takes an item that nobody has, or that one had who is dead.
func (w *fakeWorkerState) claims(i int) bool {
	for turn := range 100 {
		path := filepath.Join(w.home, fmt.Sprintf("claim-%d-%d", i, turn))
		temporary := path + "." + w.name + strconv.FormatInt(time.Now().UnixNano(), 36)
		must(os.WriteFile(temporary, []byte(w.name), 0o600))
		if os.Link(temporary, path) == nil {
			return true
		}
		owner, err := os.ReadFile(path)
		must(err)
		alive, err := os.Stat(filepath.Join(w.home, "alive-"+string(owner)))
		must(err)
		if time.Since(alive.ModTime()) < fakeDeath && !(broken(buysTwice) && turn == 0) {
			return false
		}
	}
	return false
}

// fakeCustomer submits the questions of a file, and waits for all results.
func fakeCustomer(a fakeArgs) {
	home, questions := a.value("--store"), fakeQuestions(a[0])
	text, err := json.Marshal(questions)
	must(err)
	must(os.WriteFile(filepath.Join(home, "questions.new"), text, 0o600))
	must(os.Rename(filepath.Join(home, "questions.new"), filepath.Join(home, "questions")))
	var results []string
	for i := range questions {
		for {
			text, err := os.ReadFile(filepath.Join(home, fmt.Sprint("result-", i)))
			if err == nil {
				results = append(results, string(text))
				break
			}
			time.Sleep(fakeBeat)
		}
	}
	if broken(losesOne) {
		results = results[1:]
	}
	if broken(turnsRound) {
		slices.Reverse(results)
	}
	fakeOutput(a.value("-o"), results)
}

// fakeOneProcess writes what should come out.
func fakeOneProcess(a fakeArgs) { fakeOutput(a.value("-o"), fakeQuestions(a[0])) }

func fakeOutput(path string, results []string) {
	var out strings.Builder
	for _, r := range results {
		line, err := json.Marshal(map[string]any{"custom_id": r, "headrace": map[string]any{
			"attempts": 1, "lane": "l", "queued_ms": os.Getpid(), "waited_ms": 0, "latency_ms": 0, "sum": "s",
		}})
		must(err)
		out.Write(append(line, '\n'))
	}
	must(os.WriteFile(path, []byte(out.String()), 0o600))
}

// fakeQuestions are the texts in a prompt file, whatever their form.
func fakeQuestions(path string) (all []string) {
	text, err := os.ReadFile(path)
	must(err)
	type asked struct {
		Prompt   string
		Messages []struct{ Content string }
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\uFEFF")) {
		var l struct {
			asked
			Body asked
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		must(json.Unmarshal([]byte(line), &l))
		for _, m := range append(l.Messages, l.Body.Messages...) {
			l.Prompt = m.Content
		}
		all = append(all, l.Prompt)
	}
	return all
}
