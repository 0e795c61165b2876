package batch

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/purity"
)

const module = "github.com/headrace/headrace"

// lockFree lists the folders where one goroutine owns and the others send messages, and where
// time is an argument or a clockwork.Clock, each with the least number of its files.
var lockFree = map[string]int{
	".": 5, "../coordinator": 5, "../coordinator/machine": 5, "../limiter": 5,
	"../limiter/model": 10, "../limiter/plain": 5, "../limiter/laws": 1, "../limiter/internal/measure": 3, "../limiter/internal/window": 2,
	"paced": 3, "serve": 8, "serve/door": 2, "serve/internal/line": 2, "serve/internal/queue": 2, "serve/internal/stream": 2, "prompts": 5, "journal": 5, "saver": 3, "promptfile": 5, "internal/keys": 3, "internal/lines": 2, "../internal/disk": 3,
}

// No lock, no atomic and no clock of the world's is in what decides.
func TestNoLockAndNoClock(t *testing.T) {
	for dir, least := range lockFree {
		purity.Each(t, dir, least, func(name string) ([]string, error) { return purity.LockFree(name, nil) })
	}
}

// Dependencies point one way: batch, coordinator, machine, limiter; a provider
// knows none of its callers; and the rooms of files know neither, nor each other
// but for the saver, which writes what is the journal's.
func TestDependenciesPointOneWay(t *testing.T) {
	vocabulary := []string{"limiter", "limiter/internal/measure"}
	parts := append([]string{"limiter/internal/window"}, vocabulary...)
	admission := append([]string{"limiter/laws", "limiter/model", "limiter/plain"}, parts...)
	allowed := map[string][]string{
		"limiter/internal/measure": {},
		"limiter":                  vocabulary,
		"limiter/internal/window":  vocabulary,
		"limiter/plain":            parts,
		"limiter/model":            parts,
		"limiter/laws":             admission,
		"coordinator/machine":      admission,
		"coordinator":              append([]string{"coordinator/machine"}, admission...),
		"provider/rawjson":         {},
		"provider/stream":          {"provider/rawjson"},
		"provider":                 {"provider/rawjson", "provider/stream"},
		"provider/estimate":        {"provider", "provider/rawjson", "provider/stream"},
		"provider/catalog": {
			"limiter", "limiter/internal/measure", "provider", "provider/anthropic", "provider/auth", "provider/chat", "provider/cohere", "provider/converse", "provider/gemini", "provider/openai",
			"provider/rawjson", "provider/stream", "provider/wire",
		},
		"provider/auth":        {"provider", "provider/rawjson", "provider/stream"},
		"provider/wire":        {"provider", "provider/auth", "provider/rawjson", "provider/stream"},
		"provider/fleet":       {"provider", "provider/rawjson", "provider/stream"},
		"provider/openai":      {"provider", "provider/anthropic", "provider/auth", "provider/chat", "provider/rawjson", "provider/stream", "provider/wire"},
		"provider/auth/sigv4":  {"provider", "provider/auth", "provider/rawjson", "provider/stream"},
		"provider/auth/google": {"provider", "provider/auth", "provider/rawjson", "provider/stream"},
		"provider/anthropic":   {"provider", "provider/auth", "provider/chat", "provider/rawjson", "provider/stream", "provider/wire"},
		"provider/gemini":      {"provider", "provider/auth", "provider/chat", "provider/rawjson", "provider/stream", "provider/wire"},
		"provider/converse":    {"provider", "provider/auth", "provider/chat", "provider/cohere", "provider/rawjson", "provider/stream", "provider/wire"},
		"batch":                append([]string{"coordinator", "coordinator/machine", "provider", "provider/rawjson", "provider/stream"}, admission...),
		"internal/disk":        {},
		"observe":              append([]string{"batch", "coordinator", "coordinator/machine", "provider", "provider/rawjson", "provider/stream"}, admission...),
		"batch/internal/keys":  {"provider/rawjson"},
		"batch/internal/lines": {"provider/rawjson"},
		"batch/prompts":        {"batch/internal/keys", "batch/internal/lines", "provider", "provider/rawjson", "provider/stream"},
		"batch/journal":        {"internal/disk", "batch/internal/keys", "batch/internal/lines", "provider/rawjson"},
		"batch/saver":          {"internal/disk", "batch/internal/keys", "batch/internal/lines", "batch/journal", "provider/rawjson"},
		"provider/all": {
			"provider", "provider/anthropic", "provider/auth", "provider/chat", "provider/cohere", "provider/converse", "provider/gemini", "provider/openai",
			"provider/rawjson", "provider/stream", "provider/sim/anthropic", "provider/sim/cohere", "provider/sim/converse", "provider/sim/face", "provider/sim/gemini",
			"provider/sim/openai", "provider/wire",
		},
		"batch/paced": append([]string{
			"batch", "coordinator", "coordinator/machine", "provider", "provider/estimate", "provider/rawjson", "provider/stream",
		}, admission...),
		"batch/serve/internal/line":   {},
		"batch/serve/internal/queue":  {"batch/serve/internal/line"},
		"batch/serve/door":            {"batch/serve/internal/line", "limiter", "limiter/internal/measure", "provider", "provider/rawjson", "provider/stream"},
		"batch/serve/internal/stream": {"provider", "provider/rawjson", "provider/stream"},
		"batch/serve": append([]string{
			"batch", "batch/paced", "batch/serve/door", "batch/serve/internal/line", "batch/serve/internal/queue", "batch/serve/internal/stream", "coordinator", "coordinator/machine", "provider", "provider/anthropic",
			"provider/auth", "provider/chat", "provider/cohere", "provider/converse", "provider/estimate", "provider/gemini", "provider/openai",
			"provider/rawjson", "provider/stream", "provider/wire",
		}, admission...),
		"batch/promptfile": append([]string{
			"batch", "internal/disk", "batch/internal/keys", "batch/internal/lines", "batch/journal", "batch/prompts", "batch/saver",
			"coordinator", "coordinator/machine", "provider", "provider/estimate", "provider/rawjson", "provider/stream",
		}, admission...),

		// The simulated provider shares nothing with the client's side.
		"provider/sim":           {"provider/sim/anthropic", "provider/sim/face", "provider/sim/openai"},
		"provider/sim/face":      {},
		"provider/sim/openai":    {"provider/sim/anthropic", "provider/sim/face"},
		"provider/sim/anthropic": {"provider/sim/face"},
		"provider/sim/gemini":    {"provider/sim/face"},
		"provider/sim/converse":  {"provider/sim/face"},
		"provider/sim/simtest":   {"provider/sim", "provider/sim/anthropic", "provider/sim/face", "provider/sim/openai"},
	}
	for pkg, may := range allowed {
		for _, dep := range dependencies(t, pkg) {
			own, found := strings.CutPrefix(dep, module+"/")
			if found && own != pkg && !slices.Contains(may, own) {
				t.Errorf("%s depends on %s", pkg, own)
			}
		}
	}
}

// Who imports the library gets only what it needs to run: the modules named here,
// and nothing of the command's or the tests'.
func TestLibraryPullsInNothingOfTheCommands(t *testing.T) {
	allowed := map[string][]string{
		"limiter":       {},
		"coordinator":   {"github.com/jonboulle/clockwork"},
		"provider":      {},
		"provider/auth": {},
		"provider/auth/sigv4": {
			"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/internal/", "github.com/aws/smithy-go",
		},
		"provider/auth/google": {"golang.org/x/oauth2", "cloud.google.com/go/compute/metadata"},
		"batch":                {"github.com/jonboulle/clockwork", "golang.org/x/sync/errgroup"},
		"batch/paced":          {"github.com/jonboulle/clockwork", "golang.org/x/sync/errgroup"},
		"batch/serve":          {"github.com/jonboulle/clockwork", "golang.org/x/sync/errgroup", "github.com/sashabaranov/go-openai"},
		"observe":              {"github.com/jonboulle/clockwork", "golang.org/x/sync/errgroup"},
		"batch/prompts":        {"github.com/klauspost/compress", "github.com/DataDog/datadog-agent/pkg/template/"},
		"batch/journal":        {"github.com/gofrs/flock", "golang.org/x/sys"},
		"batch/saver":          {"github.com/gofrs/flock", "golang.org/x/sys", "github.com/jonboulle/clockwork"},
		"batch/promptfile": {
			"github.com/gofrs/flock", "golang.org/x/sys", "github.com/jonboulle/clockwork", "github.com/klauspost/compress",
			"golang.org/x/sync/errgroup", "github.com/DataDog/datadog-agent/pkg/template/",
		},
	}
	for pkg, may := range allowed {
		for _, dep := range dependencies(t, pkg) {
			first, _, _ := strings.Cut(dep, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(dep, module) {
				if dep == "testing" || dep == "flag" {
					t.Errorf("%s pulls in %s", pkg, dep)
				}
				continue // of the standard library, or ours
			}
			if !slices.ContainsFunc(may, func(prefix string) bool { return strings.HasPrefix(dep, prefix) }) {
				t.Errorf("%s pulls in %s", pkg, dep)
			}
		}
	}
}

func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath", module+"/"+pkg).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	var deps []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct{ ImportPath string }
		must.Do(t, dec.Decode(&p))
		deps = append(deps, p.ImportPath) // "vendor/…" is of the standard library
	}
	if len(deps) < 5 {
		t.Fatalf("go list %s tells of %d packages only", pkg, len(deps))
	}
	return deps
}
