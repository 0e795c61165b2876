//go:build unix

package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// pages are those of a task whose commands in blocks of sh are run, in this order of the page.
var pages = []string{"first-run", "limits", "resume", "failures", "watching", "coming-from"}

// theirFiles are the inputs that the pages speak of.
var theirFiles = map[string]string{
	"prompts.jsonl":  `{"prompt":"one","max_tokens":20}` + "\n" + `{"prompt":"two"}` + "\n" + `{"prompt":"three","id":"c"}` + "\n" + `{"prompt":"four"}` + "\n" + `{"prompt":"five"}` + "\n" + `{"prompt":"six"}` + "\n",
	"mixed.jsonl":    `{"prompt":"good"}` + "\n" + `{"prompt":"wrong","max_tokens":-1}` + "\n" + `{"prompt":"good, too"}` + "\n",
	"bad.jsonl":      `{"prompt":"good"}` + "\n" + `{"prompt":` + "\n",
	"requests.jsonl": `{"model":"text-embedding-3-small","input":"embed me","metadata":{"row_id":1}}` + "\n" + `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}` + "\n",
	"batch.jsonl":    `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}}` + "\n",
}

// exitCode matches what a line of a page says of its end.
var exitCode = regexp.MustCompile(`# exit code (\d+)`)

// Each command of the pages about tasks ends as the page says, against a server that has OpenAI's place.
func TestCommandsOfThePages(t *testing.T) {
	base, stop := serveSim(sim.New(sim.Fast(), clockwork.NewRealClock()))
	defer stop()
	for _, page := range pages {
		folder := t.TempDir()
		for name, text := range theirFiles {
			must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
		text := string(must.Get(os.ReadFile("../../docs/" + page + ".md"))(t))
		ran := 0
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				want := 0
				if says := exitCode.FindStringSubmatch(line); says != nil {
					want = must.Get(strconv.Atoi(says[1]))(t)
				}
				cmd := exec.Command("sh", "-c", line)
				cmd.Dir = folder
				cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+base, "OPENAI_API_KEY=sk-of-a-test", "XDG_RUNTIME_DIR="+folder, "NO_PROXY=127.0.0.1")
				said, _ := cmd.CombinedOutput()
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Errorf("%s.md: %s: exit code %d, want %d:\n%s", page, strings.TrimSpace(line), got, want, said)
				}
				ran++
			}
		}
		if ran == 0 {
			t.Errorf("%s.md: no command was run", page)
		}
	}
}

// The pages name only flags and topics that there are, and the index names each page.
func TestWordsOfThePages(t *testing.T) {
	_, help, _ := inWorld(t, nil, nil, "help")
	known := ""
	for _, command := range []string{"run", "doctor", "plan", "serve", "status", "export", "report", "completion"} {
		_, text, _ := inWorld(t, nil, nil, command, "--help")
		known += text
	}
	theirs := strings.Fields("--requests_filepath --save_filepath --request_url --api_key --max_requests_per_minute --max_tokens_per_minute --token_encoding_name --max_attempts " +
		"--model-base-url --max-connections --adaptive-connections --delay --resume --retry-errors")
	index := string(must.Get(os.ReadFile("../../docs/README.md"))(t))
	for _, page := range append([]string{"README"}, pages...) {
		text := string(must.Get(os.ReadFile("../../docs/" + page + ".md"))(t))
		for _, flag := range regexp.MustCompile(`--[a-z][a-z_-]+`).FindAllString(text, -1) {
			if !strings.Contains(known, flag) && !slices.Contains(theirs, flag) {
				t.Errorf("%s.md: there is no %s", page, flag)
			}
		}
		for _, topic := range regexp.MustCompile("`headrace help ([a-z-]+)`").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(help, "headrace "+topic[1]+" ") {
				t.Errorf("%s.md: there is no topic %s", page, topic[1])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("../../docs", link[1])); err != nil {
				t.Errorf("%s.md: %v", page, err)
			}
		}
	}
	for _, path := range must.Get(filepath.Glob("../../docs/*.md"))(t) {
		if name := filepath.Base(path); name != "README.md" && !strings.Contains(index, fmt.Sprintf("(%s", name)) {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}
