package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// tierLane is a lane of a file that calls a simulated server, with these words besides.
func tierLane(name, base string, more ...string) string {
	lines := append([]string{"  " + name + ":", "base-url: " + base, "api-key-env: none", "preset: openai", "price: {input: 1, output: 4}"}, more...)
	return strings.Join(lines, "\n    ") + "\n"
}

// With auto a lane becomes two. A line whose flex lane has had no room for --spill goes to the standard
// one, at its price, and is marked; lines of another lane stay in flex. Nothing is asked twice.
func TestAutoTierOverLanes(t *testing.T) {
	full, base, stop := simOf(t, "--outage", "0s+2s:flex", "--latency", "20ms")
	defer stop()
	free, other, stopOther := simOf(t, "--latency", "20ms")
	defer stopOther()
	pools := "pools:\n  m:\n    lines: {model: [mini]}\n    prefer: [full]\n  n:\n    lines: {model: [big]}\n    spread: [free]\n"
	for name, c := range map[string]struct {
		config string
		flags  []string
	}{
		"flag": {"lanes:\n" + tierLane("full", base, "rpm: 3000") + tierLane("free", other) + pools, []string{"--service-tier", "auto"}},
		"file": {"lanes:\n" + tierLane("full", base, "rpm: 3000", "service-tier: auto") + tierLane("free", other, "service-tier: flex") + pools, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := full.Books().Accepted + free.Books().Accepted
			out := filepath.Join(t.TempDir(), "out.jsonl")
			runLanes(t, exit.OK, nil, append([]string{twoModels(t, 90), "-o", out, "--config", lanesFile(t, c.config), "--spill", "500ms"}, c.flags...)...)
			byLane, flex, standard := map[string]int{}, 0.0, 0.0
			for _, l := range resultsOf(t, out) {
				h := l.Headrace
				if byLane[h.Lane]++; h.Fallback != (h.Lane == "full/mini") {
					t.Errorf("%+v", h)
				}
				perToken := h.CostUSD / float64(h.Usage.Input+4*h.Usage.Output)
				if h.Lane == "full/mini" {
					standard = perToken
				} else {
					flex = perToken
				}
			}
			fell, inFlex := byLane["full/mini"], byLane["full-flex/mini"]+byLane["free/big"]+byLane["free-flex/big"]
			if name == "flag" && (fell < 10 || byLane["free-flex/big"] != 30) || fell+inFlex != 90 {
				t.Errorf("%v", byLane)
			}
			if fell > 0 && (flex > 0.51*standard || flex < 0.49*standard) {
				t.Errorf("%v a token in flex, %v in standard", flex, standard)
			}
			if n := full.Books().Accepted + free.Books().Accepted - before; n != 90 {
				t.Errorf("%d answers for 90 lines", n)
			}
		})
	}
}

// A tier of the run concerns the lanes whose provider has it. Without any such lane it is refused, and
// so is a lane whose name the flex lane of another would take.
func TestTierOverLanesOfSomeProviders(t *testing.T) {
	const claude = "  claude:\n    provider: anthropic\n    api-key-env: none\n"
	const nobody = "http://127.0.0.1:9/v1"
	for name, c := range map[string]struct {
		config, tier string
		code         int
		says         string
	}{
		"one has it":  {"lanes:\n" + tierLane("a", nobody) + claude, "flex", exit.OK, ""},
		"none has it": {"lanes:\n" + claude, "flex", exit.Usage, "--service-tier flex: no lane has such a tier that is known here: remove it"},
		"taken name":  {"lanes:\n" + tierLane("a", nobody) + tierLane("a-flex", nobody, "service-tier: standard"), "auto", exit.Usage, "auto makes a lane a-flex of it, and the file has one"},
		"split":       {"lanes:\n" + tierLane("a", nobody) + claude, "auto", exit.OK, ""},
	} {
		config := lanesFile(t, c.config)
		code, out, said := inWorld(t, nil, nil, "lanes", "--config", config, "--service-tier", c.tier, "--model", "m")
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
		if split := strings.Contains(out, "\na-flex ") && strings.Contains(out, "$0.5 in, $2 out") && strings.Contains(out, "all, tier 2"); split != (name == "split") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
