package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// board is examples/prometheus/dashboard.json, as far as this test reads it.
type board struct {
	UID        string
	Templating struct{ List []struct{ Name string } }
	Panels     []struct {
		ID          int
		Type, Title string
		Description string
		Datasource  struct{ UID string }
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

// The dashboard asks only for metrics that /metrics has, by labels that they have. No panel covers another, and each
// reads the source that the user chooses.
func TestDashboard(t *testing.T) {
	var d board
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("../../../examples/prometheus/dashboard.json"))(t), &d))
	page := string(must.Get(os.ReadFile("../../../docs/metrics.md"))(t)) // tests hold it to what is served
	labels := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| ([a-z0-9_, ]*) \\|").FindAllStringSubmatch(page, -1) {
		labels[row[1]] = append(strings.Split(row[2], ", "), "instance", "le", "")
	}
	taken, ids, asked := map[[2]int]string{}, map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %d is there twice", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if at := [2]int{x, y}; x >= 24 || taken[at] != "" {
					t.Fatalf("%s covers %q, or is too wide", p.Title, taken[at])
				} else {
					taken[at] = p.Title
				}
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s asks nothing, says nothing, or has a source of its own", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("%s: %s: it is not for the process that was chosen", p.Title, target.Expr)
			}
			checkExpr(t, target.Expr, labels, asked)
		}
	}
	if len(asked) < 25 || d.UID == "" || len(d.Templating.List) != 2 {
		t.Errorf("%d metrics are shown", len(asked))
	}
}

// checkExpr finds metrics and labels that are not served.
func checkExpr(t *testing.T, expr string, labels map[string][]string, asked map[string]bool) {
	t.Helper()
	var known []string
	for _, m := range regexp.MustCompile(`\b(headrace_[a-z0-9_]+|gen_ai_[a-z0-9_]+)(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		name := m[1]
		if labels[name] == nil {
			name = regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")
		}
		if labels[name] == nil {
			t.Errorf("%s: %s is no metric of ours", expr, m[1])
		}
		asked[name] = true
		known = append(known, labels[name]...)
		for _, l := range regexp.MustCompile(`([a-z_]+)(=~|!=|=|!~)`).FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels[name], l[1]) {
				t.Errorf("%s: %s has no label %s", expr, name, l[1])
			}
		}
	}
	for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(by[1], ", ") {
			if !slices.Contains(known, l) {
				t.Errorf("%s: no metric in it has the label %s", expr, l)
			}
		}
	}
	if len(known) == 0 {
		t.Errorf("%s has no metric", expr)
	}
}
