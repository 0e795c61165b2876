//go:build unix

package tests

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
)

// A process that is stopped for a while books that as sleep, says its end as before once it goes
// on, and its summary names the time.
func TestStoppedProcessSaysThatItSlept(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute of real time")
	}
	t.Parallel()
	const items, perMinute, stopped = 150, 600, 12 * time.Second
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer server.Close()
	in := filepath.Join(t.TempDir(), "prompts.jsonl")
	writeQuestions(t, in, items)
	cmd := exec.Command(buildCommand(t), "run", in, "-o", in+".out.jsonl", "--base-url", server.URL, "--model", "m",
		"--rpm", "600", "--burst", "1s", "--progress", "json")
	text, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		Event    string
		ElapsedS float64            `json:"elapsed_s"`
		Done     int                `json:"done"`
		BoundS   map[string]float64 `json:"bound_s"`
		Ends     *struct {
			LikelyS float64 `json:"likely_s"`
		}
	}
	stalled := race.Late(t, 50*time.Millisecond)
	slept, wrong, last := false, 0, said{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		var e said
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch last = e; {
		case e.Event == "progress" && !slept && e.ElapsedS >= 5:
			slept = true
			signal(t, cmd, syscall.SIGSTOP)
			time.Sleep(stopped) // nothing of the process says that it sleeps
			signal(t, cmd, syscall.SIGCONT)
		case e.Event == "progress" && e.BoundS["slept"] > 0 && e.Ends != nil && e.Ends.LikelyS > 2+1.5*float64(items-e.Done)/(perMinute/60):
			wrong++
			t.Logf("%d of %d after %v s: it ends in %v s", e.Done, items, e.ElapsedS, e.Ends.LikelyS)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := last.BoundS["slept"]; last.Event != "summary" || got < stopped.Seconds()-6 || got > stopped.Seconds()+6 || last.BoundS["requests"] > float64(items)/(perMinute/60)+6 { // the machine may stall
		t.Errorf("%+v", last)
	}
	if wrong > 0 && stalled() < time.Second { // a stall is a slow second to the forecast, and no sleep
		t.Errorf("%d ends were said that are too late", wrong)
	}
}

func signal(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	must.Do(t, cmd.Process.Signal(s))
}
