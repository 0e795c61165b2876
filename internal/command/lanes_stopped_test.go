package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A lane whose key is refused stops alone. The line about it speaks of the key, and summary, JSON
// and status name the lane, the reason and the variable to correct.
func TestStoppedLaneIsNamed(t *testing.T) {
	t.Parallel()
	const items = 20
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided: sk-x***abc.","type":"invalid_request_error","code":"invalid_api_key"}}`)
	}))
	defer bad.Close()
	_, base, stop := simOf(t, "--latency", "1200ms") // so long that the run has a status
	defer stop()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  good: {provider: openai, base-url: %q, api-key-env: KEY_GOOD}\n  bad: {provider: openai, base-url: %q, api-key-env: KEY_BAD}\n", base, bad.URL+"/v1"))
	env := map[string]string{"KEY_GOOD": "the-good-key-123456", "KEY_BAD": "the-bad-key-123456"}
	in, out := somePrompts(t, items, "m"), filepath.Join(t.TempDir(), "out.jsonl")
	const why, advice = "openai refuses the key: 401 invalid_api_key", "put a valid key into KEY_BAD"

	stderr := runLanes(t, 0, env, in, "-o", out, "--config", config)
	checkResults(t, out, items)
	for _, want := range []string{"bad/m: stopped: " + why, "lane           bad/m has stopped:  " + why + "; " + advice} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr, "no longer serves") || strings.Contains(stderr, "models held back") {
		t.Error(stderr)
	}

	_, status, _ := inWorld(t, strings.NewReader(""), env, "status", out)
	if want := "stopped    bad/m: " + why + "; " + advice; !strings.Contains(status, want) {
		t.Errorf("want %q in\n%s", want, status)
	}
	_, status, _ = inWorld(t, strings.NewReader(""), env, "status", out, "--json")
	if !strings.Contains(status, `"cause":"`+why+`","advice":"`+advice) {
		t.Error(status)
	}

	stderr = runLanes(t, 0, env, in, "-o", filepath.Join(t.TempDir(), "json.jsonl"), "--config", config, "--progress", "json")
	if want := `"stopped_lanes":[{"lane":"bad/m","cause":"` + why + `","advice":"` + advice; !strings.Contains(stderr, want) {
		t.Errorf("want %s in\n%s", want, stderr)
	}
}
