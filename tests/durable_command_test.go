package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// buildCommand builds the command as a user would.
func buildCommand(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "headrace")
	build := exec.Command("go", "build", "-o", bin, "github.com/headrace/headrace/cmd/headrace")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// setting is a number from the environment, for runs that are longer than usual.
func setting(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// question is the prompt of item i.
func question(i int) string { return fmt.Sprintf("what comes after %d?", i) }

// idOf is the custom_id of item i in result files. Every other line gives none, and
// is called by its number.
func idOf(i int) string {
	if i%2 == 0 {
		return "item-" + strconv.Itoa(i)
	}
	return fmt.Sprintf("line-%06d", i)
}

// writeQuestions makes a prompt file of items 1 to n, one a line.
func writeQuestions(t *testing.T, path string, n int) {
	t.Helper()
	file := must.Get(os.Create(path))(t)
	b := bufio.NewWriter(file)
	for i := 1; i <= n; i++ {
		if i%2 == 0 {
			fmt.Fprintf(b, `{"id":%q,"prompt":%q}`+"\n", idOf(i), question(i))
		} else {
			fmt.Fprintf(b, `{"prompt":%q}`+"\n", question(i))
		}
	}
	must.Do(t, errors.Join(b.Flush(), file.Close()))
}

// witness is the simulated provider, watched: how often each prompt arrived, and
// how many calls are in its hands.
type witness struct {
	server *sim.Server
	base   string

	mu       sync.Mutex
	quiet    *sync.Cond // nothing is in its hands any more
	received map[string]int
	total    int
	open     int
	conns    int
	alarm    int // the total at which ring is closed
	ring     chan struct{}
}

func newWitness(t *testing.T, cfg sim.Config) *witness {
	t.Helper()
	cfg.TrackIDs = true
	w := &witness{server: sim.New(cfg, clockwork.NewRealClock()), received: map[string]int{}}
	w.quiet = sync.NewCond(&w.mu)
	s := httptest.NewUnstartedServer(w)
	s.Config.ConnState = w.connection
	s.Start()
	t.Cleanup(s.Close)
	w.base = s.URL + "/v1"
	return w
}

// connection counts what is connected. A process that was killed is heard to the
// end: what it had sent is read before its connection is seen to be closed.
func (w *witness) connection(_ net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch state {
	case http.StateNew:
		w.conns++
	case http.StateClosed, http.StateHijacked:
		w.conns--
	}
	w.quiet.Broadcast()
}

// ServeHTTP notes a call and hands it on.
func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // its caller was killed while it sent: it has asked nothing
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.enter(promptOf(body))
	defer w.leave()
	w.server.ServeHTTP(out, r)
}

func (w *witness) enter(prompt string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received[prompt]++
	w.total++
	w.open++
	if w.ring != nil && w.total >= w.alarm {
		close(w.ring)
		w.ring = nil
	}
}

func (w *witness) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open--; w.open == 0 {
		w.quiet.Broadcast()
	}
}

// after gives a channel that is closed when n more calls have arrived.
func (w *witness) after(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ring := make(chan struct{})
	w.ring, w.alarm = ring, w.total+n
	return ring
}

// settle waits until no call is in its hands, and tells how often each prompt has
// arrived so far.
func (w *witness) settle() (received map[string]int, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.open > 0 || w.conns > 0 {
		w.quiet.Wait()
	}
	received = make(map[string]int, len(w.received))
	for prompt, n := range w.received {
		received[prompt] = n
	}
	return received, w.total
}

func promptOf(body []byte) string {
	var call struct {
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &call) != nil || len(call.Messages) == 0 {
		return ""
	}
	return call.Messages[len(call.Messages)-1].Content
}

// resultLine holds the fields of a result line that the tests look at.
type resultLine struct {
	CustomID string `json:"custom_id"`
	Response struct {
		StatusCode int `json:"status_code"`
		Body       struct {
			Choices []struct{ Message struct{ Content string } }
		}
	}
}

// savedItems reads a result file as it lies there: how many lines each id has. Only
// what stands behind the last line feed may be torn. Each answer must be the right one.
func savedItems(t *testing.T, path string, prompts map[string]string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	saved := map[string]int{}
	for line := range bytes.Lines(text) {
		if line[len(line)-1] != '\n' {
			break
		}
		var r resultLine
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("a whole line that is not JSON: %v: %s", err, line)
		}
		saved[r.CustomID]++
		prompt, known := prompts[r.CustomID]
		if c := r.Response.Body.Choices; !known || len(c) != 1 || c[0].Message.Content != sim.Answer(prompt) {
			t.Fatalf("not the answer to %q: %s", prompt, line)
		}
	}
	return saved
}
