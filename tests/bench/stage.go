package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// stage is the surroundings of every contestant of a comparison: a server, a prompt file, a
// folder for its own files.
type stage struct {
	plan
	ctx      context.Context
	self     string // this program
	folder   string
	prompts  string
	url      string
	server   *exec.Cmd
	counting string   // a headrace that reports what it allocates
	env      []string // for the contestants, added to this program's own
}

// prepare builds, writes and starts what is needed.
func prepare(ctx context.Context, p plan) (s *stage, err error) {
	s = &stage{plan: p, ctx: ctx}
	defer func() {
		if err != nil {
			s.clean()
		}
	}()
	if s.self, err = os.Executable(); err != nil {
		return s, err
	}
	if s.folder, err = os.MkdirTemp(p.dir, "headrace-bench-"); err != nil {
		return s, err
	}
	if err = s.build(); err != nil {
		return s, err
	}
	if err = s.write(); err != nil {
		return s, err
	}
	return s, s.serve()
}

func (s *stage) clean() {
	if s.server != nil && s.server.Process != nil {
		_ = s.server.Process.Kill() // it has nothing to lose
		_ = s.server.Wait()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// serve starts the server in a process of its own, so that its resources are not counted for
// a contestant.
func (s *stage) serve() error {
	s.server = exec.CommandContext(s.ctx, s.self, childWord, serveWord, "-latency", s.latency.String())
	s.server.Stderr = os.Stderr
	says, err := s.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(says).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server did not start: %w", err)
	}
	s.url = strings.TrimSpace(line)
	return nil
}

// readBooks asks the server what it has seen since the last time. It opens a connection of
// its own, which does not count.
func (s *stage) readBooks() (b books, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(s.url+booksPath, "", http.NoBody)
	if err != nil {
		return b, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if err := json.NewDecoder(resp.Body).Decode(&b); err != nil {
		return b, err
	}
	b.Connections--
	return b, nil
}

// minSize leaves room for the prompt's frame.
const minSize = 120

// write makes the prompt file: each line a request as it goes over the wire.
func (s *stage) write() error {
	s.prompts = filepath.Join(s.folder, "prompts.jsonl")
	file, err := os.Create(s.prompts)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	for i := range s.items {
		writePrompt(w, i, s.size)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// writePrompt writes one line of the required size, line feed included.
func writePrompt(w io.Writer, i, size int) {
	const frame = `{"model":"bench-1","messages":[{"role":"user","content":"%08d %s"}],"max_tokens":50}` + "\n"
	filler := bytes.Repeat([]byte("which rivers does it cross "), size/27+1)
	fmt.Fprintf(w, frame, i, filler[:size-len(frame)+len("%08d%s")-8])
}

// build makes the command, unless the user gave one, and once more with the overlay that
// reports its allocations.
func (s *stage) build() error {
	root, err := exec.CommandContext(s.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/headrace/headrace").Output()
	if err != nil {
		return fmt.Errorf("where the module is cannot be told: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	if s.binary == "" {
		s.binary = filepath.Join(s.folder, "headrace")
		if err := s.compile(dir, s.binary); err != nil {
			return err
		}
	}
	overlay, err := s.overlay(dir)
	if err != nil {
		return err
	}
	s.counting = filepath.Join(s.folder, "headrace-counting")
	return s.compile(dir, s.counting, "-overlay", overlay)
}

func (s *stage) compile(dir, to string, flags ...string) error {
	args := append([]string{"build", "-o", to}, flags...)
	cmd := exec.CommandContext(s.ctx, "go", append(args, "./cmd/headrace")...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Run()
}

// tellerVariable names the file that the counting build writes to.
const tellerVariable = "HEADRACE_BENCH_ALLOCS"

// teller is an additional file in the command's package, in a build for counting only. Every
// few milliseconds it writes how many objects were allocated so far.
const teller = `package main

import (
	"fmt"
	"os"
	"runtime/metrics"
	"time"
)

func init() {
	name := os.Getenv("` + tellerVariable + `")
	if name == "" {
		return
	}
	file, err := os.Create(name)
	if err != nil {
		panic(err)
	}
	go func() {
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
		for range time.Tick(5 * time.Millisecond) {
			metrics.Read(sample)
			file.WriteAt(fmt.Appendf(nil, "%20d", sample[0].Value.Uint64()), 0) // whole at any moment
		}
	}()
}
`

// overlay writes the teller and the list that puts it into the command's package. It returns the
// path of the list, for go build -overlay.
func (s *stage) overlay(dir string) (string, error) {
	source, list := filepath.Join(s.folder, "teller.go"), filepath.Join(s.folder, "overlay.json")
	content, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(dir, "cmd", "headrace", "bench_teller.go"): source},
	})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(source, []byte(teller), 0o600); err != nil {
		return "", err
	}
	return list, os.WriteFile(list, content, 0o600)
}
