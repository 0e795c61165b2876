package peers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// dashboardExprs returns what the example's dashboard asks, as Grafana would send it.
func dashboardExprs(t *testing.T) (list []string) {
	t.Helper()
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	folder := cmp.Or(os.Getenv("PEERS_EXAMPLES"), "../../examples/prometheus")
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(folder, "dashboard.json")))(t), &d))
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, strings.NewReplacer("$__rate_interval", "5s", "$instance", ".*").Replace(target.Expr))
		}
	}
	return list
}

// Prometheus' own parser takes each expression of the dashboard.
func TestDashboardIsPromQL(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not here: PEERS_INSTALL=1 tests/peers/run installs it, as root")
	}
	exprs := dashboardExprs(t)
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for k, expr := range exprs {
		rules += fmt.Sprintf("  - record: panel%d\n    expr: %q\n", k, expr)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	must.Do(t, os.WriteFile(file, []byte(rules), 0o600))
	promtool(t, nil, "check", "rules", file)
	if len(exprs) < 30 {
		t.Errorf("%d expressions", len(exprs))
	}
}
