package price

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider"
)

// told is what the user's prices come to.
func told(t *testing.T, file, others string, own bool) Table {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "prices.json")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		file = path
	}
	table, err := Read(file, others, own)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Each price of the list is one, dated, and what is cached costs less than what is not.
func TestBuiltInList(t *testing.T) {
	l := builtIn()
	if _, err := time.Parse(time.DateOnly, AsOf()); err != nil || len(l.Prices) < 10 {
		t.Fatalf("%+v, %v", l, err)
	}
	for name, e := range l.Prices {
		if p, fault := e.price(); fault != "" || p.Input <= 0 || p.Output <= p.Input || e.Cached != nil && p.Cached >= p.Input {
			t.Errorf("%s: %+v: %s", name, p, fault)
		}
		if Undated(name) != name {
			if _, ok := l.Prices[Undated(name)]; !ok {
				t.Errorf("%s is a build of no model", name)
			}
		}
	}
}

// A dated build has the price of its model, unless it has its own.
func TestDatedBuilds(t *testing.T) {
	table := told(t, "", "", false)
	for model, want := range map[string]float64{
		"gpt-4o": 2.5, "gpt-4o-2024-08-06": 2.5, "gpt-4o-2024-05-13": 5, "claude-sonnet-4-20250514": 3, "gpt-4o-mini": 0.15,
	} {
		if p, dated, ok := table.Of(model); !ok || !dated || p.Input != want {
			t.Errorf("%s: %+v, %v, %v", model, p, dated, ok)
		}
	}
	for _, model := range []string{"gpt-4o-audio", "gpt-4", "", "openai/gpt-4o", "gpt-4o-2024", "gpt-4o-1924-08-06", "gpt-4o-20240806x", "-20240806"} {
		if _, _, ok := table.Of(model); ok {
			t.Errorf("%s has a price", model)
		}
	}
}

// What the user tells beats the list, and --price is for what has no price otherwise. On a
// server of one's own the list does not count.
func TestWhatIsTold(t *testing.T) {
	const file = `{"gpt-4o":{"input":1,"output":2},"mine":{"input":3,"output":4,"cached":0.5}}`
	for _, tt := range []struct {
		table Table
		model string
		want  string
	}{
		{Table{}, "gpt-4o", "unknown"},
		{told(t, "", "", true), "gpt-4o", "unknown"},
		{told(t, "", "", false), "gpt-4o", "{2.5 10 1.25} true"},
		{told(t, file, "", false), "gpt-4o", "{1 2 1} false"},
		{told(t, file, "", false), "gpt-4o-2024-08-06", "{1 2 1} false"},
		{told(t, file, "", true), "mine", "{3 4 0.5} false"},
		{told(t, file, "", false), "theirs", "unknown"},
		{told(t, file, " 7, 8 ", false), "theirs", "{7 8 7} false"},
		{told(t, file, "7,8,0.7", false), "theirs", "{7 8 0.7} false"},
		{told(t, file, "7,8,0.7", false), "gpt-5", "{1.25 10 0.125} true"},
		{told(t, "", "0,0", true), "gpt-5", "{0 0 0} false"},
		{told(t, "{}", "", true), "gpt-5", "unknown"},
	} {
		p, dated, ok := tt.table.Of(tt.model)
		got := fmt.Sprint(p, " ", dated)
		if !ok {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.model, got, tt.want)
		}
	}
}

// What is not understood is refused: left out, it would be free.
func TestRefusedPrices(t *testing.T) {
	for _, others := range []string{"cheap", "1", "1,", ",1", "1,2,3,4", "1,NaN", "-1,2", "1,2,-3", "1,2,", "Inf,1", "1;2", "1e10,1", "1,1e308"} {
		if _, err := Read("", others, false); err == nil || !strings.Contains(err.Error(), strconv.Quote(others)+" is not understood: write IN,OUT or IN,OUT,CACHED in USD per million tokens, such as 2.5,10") {
			t.Errorf("--price %s: %v", others, err)
		}
	}
	path := filepath.Join(t.TempDir(), "p.json")
	for file, why := range map[string]string{
		`{"m":{"input":-1,"output":1}}`:                "m: a price is a number of 0 or more",
		`{"m":{"input":1,"output":1,"cached":-1}}`:     "m: a price is a number of 0 or more",
		`{"m":{"input":1e10,"output":1}}`:              "m: a price is a number of 0 or more, and at most 1e9",
		`{"m":{"input":1}}`:                            "m: its input or output is missing: write 0 for what is free",
		`{"m":{"output":1,"cached":1}}`:                "m: its input or output is missing",
		`{"m":null}`:                                   "m: its input or output is missing",
		`{"m":{"input":1,"output":1,"cache_write":2}}`: `unknown field "cache_write": write {"model":{"input":2.5,"output":10}}, in USD per million tokens`,
		`{"m":{"input":"1","output":1}}`:               "write {",
		`[]`:                                           "write {",
		``:                                             "write {",
		`{"m":{"input":1,"output":1}} {"n":{}}`:        "there is more behind its end: write {",
		`{"m":{"input":1e999,"output":1}}`:             "write {",
	} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := Read(path, "", false)
		if err == nil || !strings.HasPrefix(err.Error(), "--prices: "+path+": ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", file, err)
		}
		if table.models != nil {
			t.Errorf("%s: there is a table beside the error", file)
		}
	}
	if _, err := Read(path+"x", "", false); err == nil || !strings.Contains(err.Error(), "check the name of the file") {
		t.Error(err)
	}
}

// What is cached is part of the input and has its own price, and what was reasoned is output.
func TestCost(t *testing.T) {
	usage := provider.Usage{InputTokens: 1000, OutputTokens: 100, CachedTokens: 600, ReasoningTokens: 80}
	for _, tt := range []struct {
		price Price
		usage provider.Usage
		want  string
	}{
		{Price{2.5, 10, 1.25}, usage, "0.00275"}, // 400 · 2.5 + 600 · 1.25 + 100 · 10, in millionths
		{Price{2.5, 10, 2.5}, usage, "0.0035"},
		{Price{0.15, 0.6, 0.075}, provider.Usage{InputTokens: 7, OutputTokens: 3}, "0.00000285"},
		{Price{0.1, 0.2, 0.1}, provider.Usage{InputTokens: 1, OutputTokens: 1}, "0.0000003"},
		{Price{0.05, 0, 0.05}, provider.Usage{InputTokens: 3}, "0.00000015"},
		{Price{1, 1, 1}, provider.Usage{InputTokens: 1 << 40, OutputTokens: 1 << 40}, "2199023.255552"},
		{Price{}, usage, "0"},
		{Price{}, provider.Usage{}, "0"},
		{Price{1, 1, 1}, provider.Usage{}, "unknown"},
		{Price{1, 1, 0}, provider.Usage{CachedTokens: 5}, "unknown"},
		{Price{1, 1, 0}, provider.Usage{InputTokens: 5, CachedTokens: 9}, "0"}, // a part is no more than the whole
		{Price{0, 1, 0}, provider.Usage{InputTokens: 5}, "0"},
		{Price{1e-9, 0, 0}, provider.Usage{InputTokens: 1}, "0.000000000000001"},
		{Price{math.MaxFloat64, 1, 1}, provider.Usage{InputTokens: 1 << 40}, "unknown"},
		{Price{1, 1, 1}, provider.Usage{InputTokens: -5}, "unknown"},
	} {
		usd, known := tt.price.Of(tt.usage)
		got := strconv.FormatFloat(usd, 'f', -1, 64)
		if !known {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%+v of %+v: %s, want %s", tt.usage, tt.price, got, tt.want)
		}
	}
}

// What items cost adds up to what all their tokens cost, and each reads as it would by hand.
func TestCostsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for range 200 {
		p := Price{float64(rng.IntN(4000)) / 100, float64(rng.IntN(9000)) / 100, float64(rng.IntN(4000)) / 1000}
		var all provider.Usage
		sum := 0.0
		for range 1000 {
			in := rng.Int64N(100_000)
			u := provider.Usage{InputTokens: in + 1, OutputTokens: rng.Int64N(10_000), CachedTokens: rng.Int64N(in + 1)}
			usd, known := p.Of(u)
			if _, digits, _ := strings.Cut(strconv.FormatFloat(usd, 'f', -1, 64), "."); !known || len(digits) > 12 {
				t.Fatalf("%+v of %+v: %v, %v", u, p, usd, known)
			}
			all, sum = all.Add(u), sum+usd
		}
		if want, _ := p.Of(all); math.Abs(sum-want) > 1e-9*want {
			t.Fatalf("%+v of %+v: %v, and the sum is %v", all, p, want, sum)
		}
	}
}

// To ask for a cost allocates nothing: a run asks for each item.
func TestCostAllocatesNothing(t *testing.T) {
	table := told(t, "", "1,2", false)
	usage := provider.Usage{InputTokens: 10, OutputTokens: 10}
	for _, model := range []string{"gpt-4o", "gpt-4o-2024-08-06", "whoever"} {
		if n := testing.AllocsPerRun(100, func() { table.Cost(model, usage) }); n != 0 {
			t.Errorf("%s: %v allocations", model, n)
		}
	}
}

// FuzzCost: whatever is told of prices and tokens, a cost is a number of 0 or more or is not
// known, and what a line says of it is read back the same.
func FuzzCost(f *testing.F) {
	f.Add("2.5,10,1.25", int64(1000), int64(100), int64(600))
	f.Add("0,0", int64(0), int64(0), int64(0))
	f.Add("1e-300,1e300", int64(1)<<40, int64(3), int64(-1))
	f.Add("0.1,0.2", int64(-3), int64(1)<<62, int64(1)<<62)
	f.Fuzz(func(t *testing.T, others string, in, out, cached int64) {
		table, err := Read("", others, true)
		if err != nil {
			return
		}
		l := journal.Line{}
		usd, known := table.Cost("m", provider.Usage{InputTokens: in, OutputTokens: out, CachedTokens: cached})
		if known {
			l.Headrace.CostUSD = &usd
		}
		if known && (math.IsNaN(usd) || math.IsInf(usd, 0) || usd < 0) {
			t.Fatalf("%s: %v", others, usd)
		}
		var back journal.Line
		text := journal.AppendLine(nil, &l)
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := back.Headrace.CostUSD; (got != nil) != known || known && *got != usd {
			t.Fatalf("%v, %v: %s", usd, known, text)
		}
	})
}
