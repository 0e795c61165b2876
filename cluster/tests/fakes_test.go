package tests

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
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
