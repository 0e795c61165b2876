package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// threeLanes returns a file of three lanes over two pools, at these addresses: a cheap lane with a dear
// one behind it, and the dear one next to a free one.
func threeLanes(t *testing.T, cheap, dear, free string) string {
	t.Helper()
	return lanesFile(t, fmt.Sprintf(`lanes:
  cheap:
    base-url: %s
    api-key-env: none
    price: {input: 1, output: 4}
    rpm: 600
  dear:
    base-url: %s
    api-key-env: none
    price: {input: 3, output: 12}
    rpm: 1200
  free:
    base-url: %s
    api-key-env: none
    price: 0
pools:
  mini:
    lines: {model: [mini]}
    prefer: [cheap, dear]
  big:
    lines: {model: [big]}
    spread: [dear, free]
`, cheap, dear, free))
}

// twoModels returns a file of n prompts with a bound on each answer, every third of the model big.
func twoModels(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		model := "mini"
		if i%3 == 0 {
			model = "big"
		}
		fmt.Fprintf(&text, `{"prompt":"Name three rivers of country %d, and say why.","id":"p%d","model":%q,"max_tokens":60}`+"\n", i, i, model)
	}
	return writeLines(t, text.String())
}

// A pool that few of many lines go to has its items and its cost in a plan, which runs through a sample of the lines.
func TestPlanOfAPoolWithFewLines(t *testing.T) {
	config := lanesFile(t, `lanes:
  slow:
    base-url: http://127.0.0.1:9/v1
    api-key-env: none
    price: {input: 1, output: 4}
    rpm: 1
  dear:
    base-url: http://127.0.0.1:9/v1
    api-key-env: none
    price: {input: 3, output: 12}
    rpm: 60
pools:
  mini:
    lines: {model: [mini]}
    prefer: [slow]
  big:
    lines: {model: [big]}
    prefer: [dear]
`)
	var text strings.Builder
	for i := range 40_000 { // 28 days of the slow lane
		model := "mini"
		if i%20_000 == 7 {
			model = "big"
		}
		fmt.Fprintf(&text, `{"prompt":"Name three rivers.","model":%q,"max_tokens":60}`+"\n", model)
	}
	in := writeLines(t, text.String())
	code, out, said := inWorld(t, nil, nil, "plan", in, "--config", config, "--json")
	var p plannedFleet
	if err := json.Unmarshal([]byte(out), &p); code != exit.OK || err != nil || len(p.Models) != 2 {
		t.Fatalf("exit code %d: %v: %s %s", code, err, out, said)
	}
	big := p.Models[0]
	if big.Pool != "big" {
		big = p.Models[1]
	}
	if big.Items != 2 || big.Lanes[0].Items != 2 || big.Cost == nil || *big.Cost <= 0 {
		t.Errorf("%+v, want two items that cost something", big)
	}
}

// A lane without a price to which no items go leaves the cost of the others known, in each row and in all.
func TestPlanWithASpareLaneWithoutAPrice(t *testing.T) {
	config := lanesFile(t, `lanes:
  cheap:
    base-url: http://127.0.0.1:9/v1
    api-key-env: none
    price: {input: 1, output: 4}
    rpm: 6000
  spare:
    base-url: http://127.0.0.1:9/v1
    api-key-env: none
    rpm: 6000
pools:
  mini:
    lines: {model: [mini]}
    prefer: [cheap, spare]
  big:
    lines: {model: [big]}
    prefer: [cheap, spare]
`)
	in := twoModels(t, 60)
	code, out, said := inWorld(t, nil, nil, "plan", in, "--config", config)
	if inAll := regexp.MustCompile(`in all +60 .*`).FindString(out); code != exit.OK || !regexp.MustCompile(`in all +60 +[\d,]+ +[\d,]+ +\$0\.\d+ +`).MatchString(inAll) {
		t.Errorf("exit code %d: %s %s", code, out, said)
	}
	_, out, _ = inWorld(t, nil, nil, "plan", in, "--config", config, "--json")
	var p plannedFleet
	if err := json.Unmarshal([]byte(out), &p); err != nil || len(p.Models) != 2 || p.Models[0].Cost == nil || p.Models[0].High != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// plannedFleet holds what a plan says of lanes.
type plannedFleet struct {
	Models []struct {
		Model, Pool string
		Items       int
		Cost        *float64 `json:"cost_usd"`
		Low         *float64 `json:"cost_low_usd"`
		High        *float64 `json:"cost_high_usd"`
		Lanes       []struct {
			Lane    string
			Tier    int
			Items   int
			Cost    *float64 `json:"cost_usd"`
			All     *float64 `json:"cost_all_usd"`
			Source  string   `json:"price_source"`
			Seconds float64
		}
	}
	Advice []struct{ Kind, Text string }
}

// A plan over lanes says for each pool what it costs on its cheapest and on its dearest lane, and for
// each lane what it would do, how long that takes, and what all of it would cost there.
func TestPlanOverLanes(t *testing.T) {
	const nobody = "http://127.0.0.1:9/v1"
	config, in := threeLanes(t, nobody, nobody, nobody), twoModels(t, 600)
	code, out, said := inWorld(t, nil, nil, "plan", in, "--config", config, "--json")
	var p plannedFleet
	if err := json.Unmarshal([]byte(out), &p); code != exit.OK || err != nil || said != "" || len(p.Models) != 2 {
		t.Fatalf("exit code %d: %v: %s %s", code, err, out, said)
	}
	big, mini := p.Models[0], p.Models[1]
	if mini.Pool != "mini" || mini.Items != 400 || *mini.Cost != *mini.Low || *mini.High < 2.99**mini.Low || *mini.High > 3.01**mini.Low {
		t.Errorf("%+v", mini)
	}
	if l := mini.Lanes; l[0].Lane != "cheap/mini" || l[0].Items != 400 || l[0].Source != "lane" || l[0].Seconds < 35 || l[0].Seconds > 60 ||
		l[1].Tier != 2 || l[1].Items != 0 || l[1].Seconds != 0 || *l[1].All != *mini.High || *l[1].Cost != 0 {
		t.Errorf("%+v", l)
	}
	if l := big.Lanes; *big.Low != 0 || *big.High != *l[0].All || l[0].Items+l[1].Items != 200 || l[0].Items < 20 || *big.Cost != *l[0].Cost {
		t.Errorf("%+v", big)
	}
	_, text, _ := inWorld(t, nil, nil, "plan", in, "--config", config)
	for _, want := range []string{
		`\n  mini/mini +400 +[0-9,]+ +24,000 +\$0\.10 +\$0\.10–\$0\.31 +\$0\.31 +4\d\.\d s\n    cheap/mini +400 +\$0\.10 +\$0\.10 +4\d\.\d s\n    dear/mini, tier 2 +0 +\$0\.00 +\$0\.31 +–\n`,
		`\n  in all +600 `,
		`\n  faster   spread the lines of each pool over all its lanes: \d+\.\d s, for at most \$0\.46\n`,
		`\n  cheaper  prefer free in pool big: \$0\.10, while it is well\n`,
		`\n  safer    run --max-cost 0\.1\d: `,
		`\n  surer    run --pilot 50: `,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, "time with half") || strings.Contains(text, "(-c)") || strings.Contains(text, "\n\n\n") {
		t.Errorf("one sum of the limits of all lanes means nothing: %s", text)
	}
	if n := strings.Count(text, "\n  faster"); n != 1 {
		t.Errorf("%d rows say what is faster", n)
	}
}

// The cap that a plan advises covers each call of a short file, whose answers may be long: the run ends with 0.
func TestAdvisedCapCoversAShortFile(t *testing.T) {
	_, base, stop := simOf(t)
	defer stop()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  one: {provider: openai, base-url: %q, api-key-env: none, price: {input: 1, output: 4}}\n  two: {provider: openai, base-url: %[1]q, api-key-env: none, price: {input: 2, output: 8}}\n", base))
	in := somePrompts(t, 3, "m")
	_, text, _ := inWorld(t, nil, nil, "plan", in, "--config", config)
	advised := regexp.MustCompile(`run (--max-cost) ([0-9.]+):`).FindStringSubmatch(text)
	if advised == nil {
		t.Fatal(text)
	}
	runLanes(t, exit.OK, nil, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config, advised[1], advised[2])
}

// Advice that changes nothing is not given: a pool that uses its cheapest lane, alone, and no later one.
func TestPlanOverLanesGivesTrueAdvice(t *testing.T) {
	config := lanesFile(t, "lanes:\n  one:\n    base-url: http://127.0.0.1:9/v1\n    api-key-env: none\n    price: {input: 1, output: 4}\n")
	_, text, _ := inWorld(t, nil, nil, "plan", twoModels(t, 30), "--config", config)
	if strings.Contains(text, "faster") || strings.Contains(text, "cheaper") || !strings.Contains(text, "\n  all/mini ") {
		t.Error(text)
	}
	code, _, said := inWorld(t, nil, nil, "plan", twoModels(t, 30), "--config", threeLanes(t, "http://127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9"), "--model", "m", "--limit", "0")
	if code != exit.OK {
		t.Errorf("exit code %d: %s", code, said)
	}
	code, _, said = inWorld(t, nil, nil, "plan", somePrompts(t, 7, "other"), "--config", threeLanes(t, "http://127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9"))
	if code != exit.Usage || !strings.Contains(said, `no pool takes model "other" (7 lines)`) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A lane without a known price leaves the cost of its pool unknown, and never 0.
func TestPlanOverLanesWithoutAPrice(t *testing.T) {
	config := lanesFile(t, "lanes:\n  one:\n    base-url: http://127.0.0.1:9/v1\n    api-key-env: none\n    price: {input: 1, output: 4}\n  two:\n    base-url: http://127.0.0.1:9/v1\n    api-key-env: none\n")
	_, text, _ := inWorld(t, nil, nil, "plan", twoModels(t, 30), "--config", config)
	if !regexp.MustCompile(`\n  all/mini +20 .* unknown +unknown +unknown `).MatchString(text) || !strings.Contains(text, "unknown prices can be set with price in the lanes or --prices") || strings.Contains(text, "--max-cost") {
		t.Error(text)
	}
}

// A pilot over lanes asks each lane of each pool, the later tiers too. The rest is planned by what they
// showed, and its plan is near what it then costs and takes. Nothing is bought twice.
func TestPilotOverLanes(t *testing.T) {
	var base [3]string
	received := func() int { return 0 }
	for i := range base {
		server, at, stop := simOf(t, "--profile", "demo", "--rpm", "60000", "--latency", "20ms")
		defer stop()
		base[i] = at
		before := received
		received = func() int { return before() + server.Books().Accepted }
	}
	config, in, out := threeLanes(t, base[0], base[1], base[2]), twoModels(t, 120), filepath.Join(t.TempDir(), "out.jsonl")
	said := runLanes(t, exit.Bound, nil, in, "-o", out, "--config", config, "--pilot", "24", "--progress", "plain")
	byLane, spread := map[string]int{}, map[int]bool{}
	for _, l := range resultsOf(t, out) {
		byLane[l.Headrace.Lane]++
		spread[l.Headrace.Line/30] = true
	}
	if len(byLane) != 4 || len(spread) < 4 || received() != 24 {
		t.Errorf("%v, in %d quarters, %d calls", byLane, len(spread), received())
	}
	if !regexp.MustCompile(`the rest, by the pilot: 96 items for about \$0\.0`).MatchString(said) || !strings.Contains(said, "the mean of 24 answers") ||
		!regexp.MustCompile(`\n    cheap/mini +64 `).MatchString(said) || !strings.Contains(said, "requests a minute") || !strings.Contains(said, "--config "+config+" --progress plain\n") {
		t.Error(said)
	}
	runLanes(t, exit.OK, nil, in, "-o", out, "--config", config)
	if received() != 120 || len(resultsOf(t, out)) != 120 {
		t.Errorf("%d calls for %d lines", received(), len(resultsOf(t, out)))
	}
}
