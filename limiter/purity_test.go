package limiter

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/purity"
)

var pureImports = []string{"cmp", "errors", "fmt", "math", "math/bits", "math/rand/v2", "slices", "strconv", "strings", "time"}

// ours lists the folders, and what each may import of this package's own.
var ours = map[string][]string{
	".":                {"internal/measure"},
	"internal/measure": {},
	"internal/window":  {".", "internal/measure"},
	"plain":            {".", "internal/measure", "internal/window"},
	"model":            {".", "internal/measure", "internal/window"},
	"laws":             {".", "plain", "model"},
}

// home is the import path of this folder.
const home = "github.com/headrace/headrace/limiter"

// Nothing in this package or in those below it starts a goroutine, talks over a channel, reads a
// clock, or imports a package through which it could. What helps tests is left out.
func TestPackageIsPure(t *testing.T) {
	for dir, own := range ours {
		allowed := func(imported string) bool {
			return slices.Contains(pureImports, imported) || slices.ContainsFunc(own, func(own string) bool { return path.Join(home, own) == imported })
		}
		purity.Each(t, dir, 2, func(name string) ([]string, error) { return purity.Pure(name, nil, allowed) })
	}
	must.Do(t, filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		dir := filepath.ToSlash(filepath.Dir(name))
		if _, known := ours[dir]; !known && filepath.Ext(name) == ".go" && dir != "internal/parttest" {
			t.Errorf("%s: what may its folder import?", name)
		}
		return err
	}))
}
