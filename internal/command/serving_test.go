//go:build unix

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// serving is headrace serve in a process of its own.
type serving struct {
	t       *testing.T
	cmd     *exec.Cmd
	base    string // without /v1
	token   string
	exports []string
	said    *said
	client  *http.Client
}

// said gathers what a process writes.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// startServing starts headrace serve in a folder, and waits until it serves.
func startServing(t *testing.T, folder string, args ...string) *serving {
	t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--addr") && !strings.Contains(strings.Join(args, " "), "--socket") {
		args = append(args, "--addr", "127.0.0.1:0")
	}
	s := &serving{t: t, cmd: exec.Command("headrace", append([]string{"serve"}, args...)...), said: &said{}}
	s.cmd.Dir, s.cmd.Stderr = folder, s.said
	s.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, "OPENAI_API_KEY=sk-of-the-provider")
	pipe := must.Get(s.cmd.StdoutPipe())(t)
	must.Do(t, s.cmd.Start())
	t.Cleanup(func() { _, _ = s.cmd.Process.Kill(), s.cmd.Wait() })
	lines := bufio.NewScanner(pipe)
	for s.token == "" && lines.Scan() {
		line := lines.Text()
		s.exports = append(s.exports, line)
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		switch {
		case strings.HasSuffix(name, "_BASE_URL"):
			s.base = strings.TrimSuffix(value, "/v1")
		case strings.HasSuffix(name, "_KEY"):
			s.token = value
		}
	}
	if s.token == "" {
		_ = s.cmd.Wait()
		t.Fatalf("it does not serve: %s", s.said)
	}
	if path, is := strings.CutPrefix(s.token, "$(cat "); is {
		path = strings.Trim(strings.TrimSuffix(path, ")"), "'")
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		s.token = strings.TrimSpace(read(t, path))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	if at := strings.Index(strings.Join(args, " "), "--socket "); at >= 0 {
		s.base = "http://localhost"
		socket := filepath.Join(folder, strings.Fields(strings.Join(args, " ")[at:])[1])
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// chat asks one question, with further headers in pairs.
func (s *serving) chat(body string, header ...string) (status int, text string, h http.Header) {
	s.t.Helper()
	req := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+"/v1/chat/completions", strings.NewReader(body)))(s.t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return s.ask(req)
}

func (s *serving) ask(req *http.Request) (status int, text string, h http.Header) {
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return resp.StatusCode, string(all), resp.Header
}

func (s *serving) get(path, token string) (status int, text string) {
	s.t.Helper()
	req := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, nil))(s.t)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	status, text, _ = s.ask(req)
	return status, text
}

// stands is a part of /headrace/status.
type stands struct {
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
}

// until waits until the server stands as wanted.
func (s *serving) until(wanted func(stands) bool) {
	s.t.Helper()
	for {
		status, text := s.get("/headrace/status", s.token)
		var st stands
		if err := json.Unmarshal([]byte(text), &st); status != http.StatusOK || err != nil {
			s.t.Fatalf("%d %s: %s", status, text, s.said)
		}
		if wanted(st) {
			return
		}
	}
}

// says waits until the server has said a text.
func (s *serving) says(text string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(s.said.String(), text) {
		if time.Now().After(deadline) {
			s.t.Fatalf("it does not say %q: %s", text, s.said)
		}
		time.Sleep(time.Millisecond)
	}
}

// end ends it by a signal.
func (s *serving) end(sig os.Signal) (code int) {
	s.t.Helper()
	must.Do(s.t, s.cmd.Process.Signal(sig))
	_ = s.cmd.Wait() // the code says it
	return s.cmd.ProcessState.ExitCode()
}

const hello = `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`

// The first lines are what a shell needs, and a program that has them is answered; the token's file is its
// owner's alone, and the token stays the same when serve begins anew.
func TestServeAnswersWhoHasItsLines(t *testing.T) {
	folder := t.TempDir()
	_, base := serveFor(t, sim.Config{Keys: []string{"sk-of-the-provider"}})
	s := startServing(t, folder, "--base-url", base, "--api-key-env", "OPENAI_API_KEY", "--token-file", "token")
	if want := regexp.MustCompile(`^export OPENAI_BASE_URL=http://127\.0\.0\.1:\d+/v1\nexport OPENAI_API_KEY=hr-[0-9a-f]{48}$`); !want.MatchString(strings.Join(s.exports, "\n")) {
		t.Errorf("the lines are %q", s.exports)
	}
	status, text, h := s.chat(hello)
	if status != http.StatusOK || !strings.Contains(text, `"content":`) || h.Get("X-Headrace-Attempts") != "1" {
		t.Errorf("%d %s %v", status, text, h)
	}
	if status, text, _ := s.chat(hello, "Authorization", "Bearer sk-of-the-provider"); status != http.StatusUnauthorized || strings.Contains(text, "sk-of") {
		t.Errorf("with the provider's key: %d %s", status, text)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/headrace/status": 401, "/metrics": 401, "/nowhere": 401} {
		if status, text := s.get(path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := s.get("/metrics", s.token); status != http.StatusOK || !strings.Contains(text, `headrace_serve_requests_total{class="normal",client="default",lane="openai/m",result="answered"} 1`) {
		t.Errorf("%d %s", status, text)
	}
	if info := must.Get(os.Stat(filepath.Join(folder, "token")))(t); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	if code := s.end(syscall.SIGTERM); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.said)
	}
	again := startServing(t, folder, "--base-url", base, "--api-key-env", "OPENAI_API_KEY", "--token-file", "token")
	if again.token != s.token || !strings.HasSuffix(strings.Join(again.exports, "\n"), "OPENAI_API_KEY=$(cat token)") {
		t.Errorf("%q, and before %q", again.exports, s.token)
	}
	if status, text, _ := again.chat(hello); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if text := s.said.String() + again.said.String(); strings.Contains(text, s.token) || strings.Contains(text, "sk-of") {
		t.Errorf("a secret is in %s", text)
	}
}

// With --open the metrics and the status need no token, as calls do not, and a page in a browser sees neither.
func TestOpenServeShowsItsStatus(t *testing.T) {
	s := startServing(t, t.TempDir(), "--provider", "sim", "--open")
	for path, want := range map[string]string{"/metrics": `headrace_serve_waiting{class="batch"} 0`, "/headrace/status": `"waiting":0`} {
		if status, text := s.get(path, ""); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
		page := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, nil))(t)
		page.Header.Set("Origin", "https://evil.example")
		if status, text, _ := s.ask(page); status == http.StatusOK || strings.Contains(text, want) {
			t.Errorf("%s from a page: %d %s", path, status, text)
		}
	}
}

// A unix socket is this user's alone, needs no token for the status, and is gone at the end. Another process
// at the same path is refused; one that was killed leaves nothing in the way.
func TestServeOnASocket(t *testing.T) {
	folder := t.TempDir()
	s := startServing(t, folder, "--provider", "sim", "--socket", "hr.sock")
	if info := must.Get(os.Stat(filepath.Join(folder, "hr.sock")))(t); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	if status, text, _ := s.chat(hello); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if status, text := s.get("/headrace/status", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	second := exec.Command("headrace", "serve", "--provider", "sim", "--socket", "hr.sock")
	second.Dir = folder
	if said, err := second.CombinedOutput(); second.ProcessState.ExitCode() != exit.Usage || !strings.Contains(string(said), "another process listens there") {
		t.Errorf("%v: %s", err, said)
	}
	must.Do(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	third := startServing(t, folder, "--provider", "sim", "--socket", "hr.sock")
	if status, text, _ := third.chat(hello); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if code := third.end(os.Interrupt); code != exit.OK {
		t.Errorf("exit code %d: %s", code, third.said)
	}
	if _, err := os.Stat(filepath.Join(folder, "hr.sock")); err == nil {
		t.Error("the socket is still there")
	}
}

// A signal refuses what waits with a Retry-After, lets calls in flight finish, and ends with 0; with
// --drain-waiting what waits is answered, too.
func TestServeDrains(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 200 * time.Millisecond}})
			s := startServing(t, t.TempDir(), "--base-url", base, "--api-key-env", "none", "-c", "2", fmt.Sprintf("--drain-waiting=%t", waiting))
			var calls sync.WaitGroup
			statuses := make(chan int, 20)
			for range cap(statuses) {
				calls.Go(func() {
					status, text, h := s.chat(hello)
					statuses <- status
					if status == http.StatusServiceUnavailable && (h.Get("Retry-After") != "1" || !strings.Contains(text, "headrace_stopped")) || status != 200 && status != 503 {
						t.Errorf("%d %s %v", status, text, h)
					}
				})
			}
			s.until(func(st stands) bool { return st.InFlight == 2 && st.Waiting == 18 })
			if code := s.end(syscall.SIGTERM); code != exit.OK {
				t.Errorf("exit code %d: %s", code, s.said)
			}
			calls.Wait()
			close(statuses)
			n := map[int]int{}
			for status := range statuses {
				n[status]++
			}
			if waiting && n[200] != 20 || !waiting && (n[200] < 2 || n[503] == 0 || n[200]+n[503] != 20) {
				t.Error(n)
			}
		})
	}
}

// A second signal ends it at once, though its call would never end.
func TestSecondSignalEndsServe(t *testing.T) {
	_, base := serveFor(t, sim.Config{Errors: sim.Rates{Hang: 1}})
	s := startServing(t, t.TempDir(), "--base-url", base, "--api-key-env", "none")
	asked := make(chan int, 1)
	go func() { status, _, _ := s.chat(hello); asked <- status }()
	s.until(func(st stands) bool { return st.InFlight == 1 })
	must.Do(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.says("stopping by a SIGTERM")
	if code := s.end(os.Interrupt); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.said)
	}
	if status := <-asked; status == http.StatusOK {
		t.Error("answered")
	}
}

// SIGHUP reads the clients and the lanes again. A fault in a file leaves everything as it was.
func TestServeReadsItsFilesAgain(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	token := func(name string) (token, entry string) {
		t.Helper()
		cmd := exec.Command("headrace", "serve", "token", name)
		var errs strings.Builder
		cmd.Stderr = &errs
		entry = string(must.Get(cmd.Output())(t))
		return strings.TrimSpace(errs.String()[strings.LastIndex(errs.String(), " "):]), entry
	}
	alice, aliceEntry := token("alice")
	bob, bobEntry := token("bob")
	write("clients.yaml", "clients:\n"+aliceEntry+"    admin: true\n")
	write("lanes.yaml", "lanes:\n  one:\n    provider: sim\n    models: {a: a}\n")
	s := startServing(t, folder, "--clients", "clients.yaml", "--config", "lanes.yaml")
	ask := func(token, model string) int {
		t.Helper()
		status, _, _ := s.chat(strings.Replace(hello, `"m"`, `"`+model+`"`, 1), "Authorization", "Bearer "+token)
		return status
	}
	if got := []int{ask(alice, "a"), ask(alice, "b"), ask(bob, "a")}; fmt.Sprint(got) != "[200 404 401]" {
		t.Errorf("%d", got)
	}
	write("clients.yaml", "clients:\n"+bobEntry)
	write("lanes.yaml", "lanes:\n  one:\n    provider: sim\n    models: {b: b}\n")
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("SIGHUP: the files are read again")
	if got := []int{ask(bob, "b"), ask(bob, "a"), ask(alice, "b")}; fmt.Sprint(got) != "[200 404 401]" {
		t.Errorf("after SIGHUP: %d", got)
	}
	write("clients.yaml", "clients:\n  bob:\n    wieght: 3\n")
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("SIGHUP: nothing is changed: clients.yaml:3: client bob: unknown word \"wieght\": did you mean weight?")
	if got := ask(bob, "b"); got != http.StatusOK {
		t.Errorf("after a fault: %d", got)
	}
}

// The file of --config holds flags of serve, too, and a flag on the command line goes before them. SIGHUP changes
// the limits of lanes in use at once, and says which values hold after a restart only.
func TestServeReadsItsFlagsAgain(t *testing.T) {
	for name, limit := range map[string]string{
		"one provider": "provider: sim\nsim-profile: fast\nburst: 1s\nrpm: %s\n",
		"lanes":        "lanes:\n  a:\n    provider: sim\n    sim-profile: fast\n    burst: 1s\n    rpm: %s\n",
	} {
		t.Run(name, func(t *testing.T) { readsItsFlagsAgain(t, limit) })
	}
}

func readsItsFlagsAgain(t *testing.T, limit string) {
	t.Helper()
	folder := t.TempDir()
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(folder, "serve.yaml"), []byte(text), 0o600))
	}
	write(fmt.Sprintf(limit, "1") + "law: plain\nmax-waiting: 1\nmax-wait: 10m\ndrain: 1s\nopen: true\n")
	s := startServing(t, folder, "--config", "serve.yaml", "--max-wait", "5m")
	if status, text, _ := s.chat(hello); status != http.StatusOK {
		t.Fatalf("%d %s: %s", status, text, s.said)
	}
	waited := make(chan string, 2)
	for range cap(waited) { // one has its turn, and one is in the queue
		go func() {
			status, text, h := s.chat(hello)
			if status != http.StatusOK {
				waited <- text
				return
			}
			waited <- h.Get("X-Headrace-Waited-Ms")
		}()
	}
	s.until(func(st stands) bool { return st.Waiting == 2 })
	if status, text, _ := s.chat(hello); status != http.StatusTooManyRequests || !strings.Contains(text, "headrace_queue_full") {
		t.Errorf("%d %s", status, text)
	}
	write(fmt.Sprintf(limit, "60000") + "law: plain\nmax-waiting: 3\nmax-wait: 11m\nconcurrency: 7\nopen: true\n")
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("SIGHUP: the files are read again, but --concurrency, --drain, --max-waiting: the new value holds after a restart")
	for range cap(waited) {
		if ms, err := strconv.Atoi(<-waited); err != nil || ms > 45_000 { // a minute, by the old limit
			t.Errorf("waited %d ms, %v", ms, err)
		}
	}
	if status, text, _ := s.chat(strings.Replace(hello, `"m"`, `"another"`, 1)); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	write(fmt.Sprintf(limit, "1") + "max-waiting: 0\nopen: true\n")
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("SIGHUP: nothing is changed: --max-waiting")
}

// Requests with one beginning go to one lane of a sticky pool, and those that name one cache. A request whose home lets it
// wait for longer than patience goes to another lane, also where others wait before it.
func TestServeSticks(t *testing.T) {
	folder := t.TempDir()
	text := "open: true\nlaw: plain\nlanes:\n"
	for _, lane := range []string{"a", "b", "c", "d"} {
		text += "  " + lane + ":\n    provider: sim\n    sim-profile: fast\n    models: {m: m}\n    rpm: 30\n    burst: 1m\n"
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "lanes.yaml"), []byte(text+"pools:\n  all:\n    sticky: [a, b, c, d]\n    patience: 1s\n"), 0o600))
	s := startServing(t, folder, "--config", "lanes.yaml")
	lanes := map[string]map[string]int{} // calls, by what they have in common
	homes := map[string]bool{}
	ask := func(key, body string) string {
		status, text, h := s.chat(body)
		if status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
		if lane := h.Get("X-Headrace-Lane"); lanes[key] == nil {
			lanes[key] = map[string]int{lane: 1}
		} else {
			lanes[key][lane]++
		}
		return h.Get("X-Headrace-Lane")
	}
	for i := range 4 {
		for n := range 8 {
			key := fmt.Sprintf("beginning %d", i)
			homes[ask(key, fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"%s%s"},{"role":"user","content":"%d"}]}`, key, strings.Repeat(".", 1000), n))] = true
			homes[ask("cache", fmt.Sprintf(`{"model":"m","prompt_cache_key":"one","messages":[{"role":"user","content":"%d %d"}]}`, i, n))] = true
		}
	}
	for key, of := range lanes {
		if len(of) != 1 && key != "cache" || len(of) > 2 {
			t.Errorf("%s: %v", key, of)
		}
	}
	if len(homes) < 2 {
		t.Errorf("all have the home %v", homes)
	}
	var calls sync.WaitGroup
	var mu sync.Mutex
	burst := map[string]int{}
	for n := range 60 { // a home has room for some of them, and then for one in 2 s
		calls.Go(func() {
			status, text, h := s.chat(fmt.Sprintf(`{"model":"m","prompt_cache_key":"two","messages":[{"role":"user","content":"%d"}]}`, n))
			if status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
			mu.Lock()
			defer mu.Unlock()
			burst[h.Get("X-Headrace-Lane")]++
		})
	}
	if calls.Wait(); len(burst) != 4 {
		t.Errorf("a home that has no room: %v", burst)
	}
}

// Under nohup, which ignores SIGHUP, it reads its files again all the same.
func TestServeUnderNohupReadsItsFilesAgain(t *testing.T) {
	signal.Ignore(syscall.SIGHUP) // a process that is started now inherits that
	defer signal.Reset(syscall.SIGHUP)
	s := startServing(t, t.TempDir(), "--provider", "sim")
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("SIGHUP: the files are read again")
	if code := s.end(syscall.SIGTERM); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.said)
	}
}

// At debug level a request is a line, which has nothing of its body, and no token.
func TestAccessLog(t *testing.T) {
	folder := t.TempDir()
	s := startServing(t, folder, "--provider", "sim", "--sim-profile", "fast", "--log-level", "debug", "--log-file", "log.txt", "--log-format", "json")
	s.chat(strings.Replace(hello, "Hello", "a-secret-question", 1), "X-Headrace-Client", "nightly", "X-Headrace-Priority", "batch")
	s.end(syscall.SIGTERM)
	text := read(t, filepath.Join(folder, "log.txt"))
	var line struct {
		Msg, Client, Class, Path, Model, Lane string
		Status                                int
	}
	if err := json.Unmarshal([]byte(text), &line); err != nil || fmt.Sprint(line) != "{request nightly batch /v1/chat/completions m sim/all-models 200}" {
		t.Errorf("%v: %s", err, text)
	}
	if strings.Contains(text, "a-secret") || strings.Contains(text, s.token) {
		t.Error(text)
	}
}
