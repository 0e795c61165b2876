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
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// givenTable returns the table of the user's prices, over the built-in ones of a vendor.
func givenTable(t *testing.T, file, others, vendor string) Table {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "prices.json")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		file = path
	}
	table, err := Read(file, others, vendor)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The user's word beats the list, that of a file beats --price, and that of a lane beats both.
// On a server of one's own the list does not count.
func TestSources(t *testing.T) {
	const file = `{"gpt-4o":{"input":1,"output":2},"mine":{"input":3,"output":4,"cached":0.5,"cache_write":3.5,"cache_write_1h":5,"above":[{"tokens":9,"input":6,"output":8}]}}`
	listed := " " + FromTable()
	lane := givenTable(t, file, "1,9", "openai")
	lane.OfLane()
	for _, tt := range []struct {
		table Table
		model string
		want  string
	}{
		{Table{}, "gpt-4o", "unknown"},
		{givenTable(t, "", "", ""), "gpt-4o", "unknown"},
		{givenTable(t, "", "", "ollama"), "gpt-4o", "unknown"},
		{givenTable(t, "", "", "openai"), "gpt-4o", "{2.5 10 1.25 2.5 2.5} 0" + listed},
		{givenTable(t, "", "", "anthropic"), "claude-opus-5", "{5 25 0.5 6.25 10} 0" + listed},
		{givenTable(t, file, "", "openai"), "gpt-4o", "{1 2 1 1 1} 0 file"},
		{givenTable(t, file, "", "openai"), "gpt-4o-2024-08-06", "{1 2 1 1 1} 0 file"},
		{givenTable(t, file, "", ""), "mine", "{3 4 0.5 3.5 5} 1 file"},
		{givenTable(t, file, "", "openai"), "theirs", "unknown"},
		{givenTable(t, file, " 7, 8 ", "openai"), "theirs", "{7 8 7 7 7} 0 flag"},
		{givenTable(t, file, "7,8,0.7", "openai"), "theirs", "{7 8 0.7 7 7} 0 flag"},
		{givenTable(t, file, "7,8,0.7,9", "openai"), "theirs", "{7 8 0.7 9 9} 0 flag"},
		{givenTable(t, file, "7,8,0.7", "openai"), "gpt-5", "{7 8 0.7 7 7} 0 flag"},
		{givenTable(t, "", "0,0", ""), "gpt-5", "{0 0 0 0 0} 0 flag"},
		{givenTable(t, "", "0", ""), "gpt-5", "{0 0 0 0 0} 0 flag"},
		{givenTable(t, "{}", "", ""), "gpt-5", "unknown"},
		{lane, "gpt-4o", "{1 9 1 1 1} 0 lane"},
	} {
		p, source, ok := tt.table.Of(tt.model)
		got := fmt.Sprint(p.Rates, " ", len(p.Above), " ", source)
		if !ok {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.model, got, tt.want)
		}
	}
}

// A provider that tells what an answer cost is believed before any price, and no other server is.
func TestReportedCosts(t *testing.T) {
	u := provider.Usage{InputTokens: 1000, OutputTokens: 10, Told: 5, HasTold: true}
	for vendor, want := range map[string]string{"openrouter": "5 provider", "xai": "5 provider", "vllm": "1020000000 flag", "": "1020000000 flag"} {
		table := givenTable(t, "", "1,2", vendor)
		cost, source, known := table.Cost("m", u, friday)
		if got := fmt.Sprint(int64(cost), " ", source); got != want || !known {
			t.Errorf("%s: %s, %v, want %s", vendor, got, known, want)
		}
		u := u
		u.HasTold = false
		if _, source, _ := table.Cost("m", u, friday); source != FromFlag {
			t.Errorf("%s: %s", vendor, source)
		}
	}
}

// Days, hours and tiers choose the rates; the last case that holds counts. A tier that the price
// does not name has no known cost.
func TestCases(t *testing.T) {
	table := givenTable(t, `{"m":{"input":1,"output":1,"when":[
		{"from":"2026-12-01","input":2,"output":2},
		{"from":"2027-01-01","until":"2027-01-31","input":3,"output":3},
		{"hours":"22:30-02:00","from":"2026-12-01","input":9,"output":9},
		{"tier":"flex","times":0.5},
		{"tier":"batch","input":0.25,"output":0.25}
	]}}`, "", "")
	for _, tt := range []struct {
		at   string
		tier provider.Tier
		want float64 // USD for a million tokens; below 0: unknown
	}{
		{"2026-11-30T23:59:59Z", provider.StandardTier, 1},
		{"2026-12-01T03:00:00Z", provider.StandardTier, 2},
		{"2026-12-01T00:00:00Z", provider.StandardTier, 9},
		{"2026-12-31T22:29:59Z", provider.StandardTier, 2},
		{"2026-12-31T22:30:00Z", provider.StandardTier, 9},
		{"2027-01-31T20:00:00Z", provider.StandardTier, 3},
		{"2027-02-01T02:00:00Z", provider.StandardTier, 2},
		{"2027-02-01T01:59:59Z", provider.StandardTier, 9},
		{"2027-01-05T12:00:00+02:00", provider.FlexTier, 1.5},
		{"2026-11-30T23:00:00Z", provider.FlexTier, 0.5},
		{"2027-01-05T12:00:00Z", provider.BatchTier, 0.25},
		{"2027-01-05T12:00:00Z", provider.PriorityTier, -1},
		{"2027-01-05T12:00:00Z", provider.OtherTier, -1},
		{"2027-01-05T12:00:00Z", provider.MixedTier, -1},
	} {
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		cost, _, known := table.Cost("m", provider.Usage{InputTokens: 1e6, Tier: tt.tier}, at)
		if usd := cost.USD(); known != (tt.want >= 0) || known && usd != tt.want {
			t.Errorf("%s, %s: %v, %v, want %v", tt.at, tt.tier, usd, known, tt.want)
		}
	}
	p, _, _ := table.Of("m")
	if got := p.Estimate(1e6, 0, friday); got.USD() != 1 {
		t.Error(got)
	}
	if got := p.Estimate(1e6, 0, friday.AddDate(0, 0, 7)); got.USD() != 9 { // some hour may be dear
		t.Error(got)
	}
}

// What is not understood is refused: left out, it would be free.
func TestRefusedPrices(t *testing.T) {
	for _, others := range []string{"cheap", "1", "1,", ",1", "1,2,3,4,5", "1,2,3,-4", "1,NaN", "-1,2", "1,2,-3", "1,2,", "Inf,1", "1;2", "1e10,1", "1,1e308"} {
		if _, err := Read("", others, "openai"); err == nil || !strings.Contains(err.Error(), strconv.Quote(others)+" is invalid: write IN,OUT, IN,OUT,CACHED or IN,OUT,CACHED,WRITE in USD per million tokens, such as 2.5,10, none of them above 1e9") {
			t.Errorf("--price %s: %v", others, err)
		}
	}
	path := filepath.Join(t.TempDir(), "p.json")
	for file, why := range map[string]string{
		`{"m":{"input":-1,"output":1}}`:                                 "m: want a number from 0 to 1e9",
		`{"m":{"input":1,"output":1,"cached":-1}}`:                      "m: want a number from 0 to 1e9",
		`{"m":{"input":1e10,"output":1}}`:                               "m: want a number from 0 to 1e9",
		`{"m":{"input":1}}`:                                             "m: its input or output is missing: write 0 for free",
		`{"m":{"output":1,"cached":1}}`:                                 "m: its input or output is missing",
		`{"m":null}`:                                                    "m: its input or output is missing",
		`{"m":{"input":1,"output":1,"cache_write":-1}}`:                 "m: want a number from 0 to 1e9",
		`{"m":{"input":1,"output":1,"cache_wrote":2}}`:                  `unknown field "cache_wrote": write {"model":{"input":2.5,"output":10}}, in USD per million tokens`,
		`{"m":{"input":1,"output":1,"above":[{"tokens":5,"input":2}]}}`: "m: above: its input or output is missing",
		`{"m":{"input":1,"output":1,"above":[{"input":2,"output":2}]}}`: "m: above: tokens of 0: want more than 0",
		`{"m":{"input":1,"output":1,"above":[{"tokens":5,"input":2,"output":2},{"tokens":5,"input":2,"output":2}]}}`: "m: above: tokens of 5: want more than 5",
		`{"m":{"input":1,"output":1,"when":[{"input":1,"output":1}]}}`:                                               "m: when: it has no condition",
		`{"m":{"input":1,"output":1,"when":[{"tier":"fast","times":2}]}}`:                                            `m: when: tier "fast": want flex, priority or batch`,
		`{"m":{"input":1,"output":1,"when":[{"tier":"flex","times":-1}]}}`:                                           "m: when: times of -1: want a number from 0 to 100",
		`{"m":{"input":1,"output":1,"when":[{"tier":"flex","times":1,"input":1}]}}`:                                  "m: when: times: it is for a tier, without rates of its own",
		`{"m":{"input":1,"output":1,"when":[{"from":"2026-11-31","input":1,"output":1}]}}`:                           `m: when: from "2026-11-31": want a day such as 2026-12-31`,
		`{"m":{"input":1,"output":1,"when":[{"hours":"1-4","input":1,"output":1}]}}`:                                 `m: when: hours "1-4": want two times of the day in UTC, such as 01:00-04:00`,
		`{"m":{"input":1,"output":1,"when":[{"hours":"04:00-04:00","input":1,"output":1}]}}`:                         `m: when: hours "04:00-04:00"`,
		`{"m":{"input":1,"output":1,"when":[{"from":"2026-11-30","input":1}]}}`:                                      "m: when: its input or output is missing",
		`{"m":{"input":"1","output":1}}`:                                                                             "write {",
		`[]`:                                                                                                         "write {",
		``:                                                                                                           "write {",
		`{"m":{"input":1,"output":1}} {"n":{}}`:                                                                      "there is more after its end: write {",
		`{"m":{"input":1e999,"output":1}}`:                                                                           "write {",
	} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := Read(path, "", "openai")
		if err == nil || !strings.HasPrefix(err.Error(), "--prices: "+path+": ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", file, err)
		}
		if table.file != nil || table.listed != nil {
			t.Errorf("%s: there is a table beside the error", file)
		}
	}
	if _, err := Read(path+"x", "", "openai"); err == nil || !strings.Contains(err.Error(), "check the name of the file") {
		t.Error(err)
	}
}

// flat is a price without steps, whose writing to a cache is input as any other.
func flat(input, output, cached float64) Price {
	return scheduledPrice(Rates{Input: input, Output: output, Cached: cached, Write: input})
}

func scheduledPrice(r Rates, above ...Step) Price {
	return Price{Schedule: Schedule{Rates: r, Above: above}}
}

// Cached tokens are part of the input and have their own prices, and reasoning tokens are
// output. A step holds for all of a request, from one token more on.
func TestCost(t *testing.T) {
	usage := provider.Usage{InputTokens: 1000, OutputTokens: 100, CachedTokens: 600, CacheWriteTokens: 300, ReasoningTokens: 80}
	written := scheduledPrice(Rates{3, 15, 0.3, 3.75, 6}, Step{999, Rates{6, 22.5, 0.6, 7.5, 12}}, Step{2000, Rates{9, 30, 0.9, 9, 18}})
	for _, tt := range []struct {
		price Price
		usage provider.Usage
		want  string
	}{
		{flat(2.5, 10, 1.25), usage, "0.00275"}, // 400 · 2.5 + 600 · 1.25 + 100 · 10, in millionths
		{flat(2.5, 10, 2.5), usage, "0.0035"},
		{scheduledPrice(written.Rates), usage, "0.003105"}, // 100 · 3 + 600 · 0.3 + 300 · 3.75 + 100 · 15
		{written, usage, "0.00546"},                        // 100 · 6 + 600 · 0.6 + 300 · 7.5 + 100 · 22.5
		{written, provider.Usage{InputTokens: 999, OutputTokens: 1}, "0.003012"},
		{written, provider.Usage{InputTokens: 2000, OutputTokens: 5000}, "0.1245"},
		{written, provider.Usage{InputTokens: 2001, CachedTokens: 2001}, "0.0018009"},
		{written, provider.Usage{InputTokens: 5, CachedTokens: 3, CacheWriteTokens: 9}, "0.0000084"},                                // parts are no more than the whole
		{scheduledPrice(written.Rates), provider.Usage{InputTokens: 1000, CacheWriteTokens: 300, LongWriteTokens: 200}, "0.003675"}, // 700 · 3 + 100 · 3.75 + 200 · 6
		{scheduledPrice(written.Rates), provider.Usage{InputTokens: 10, CacheWriteTokens: 300, LongWriteTokens: 200}, "0.00006"},
		{flat(0.15, 0.6, 0.075), provider.Usage{InputTokens: 7, OutputTokens: 3}, "0.00000285"},
		{flat(0.1, 0.2, 0.1), provider.Usage{InputTokens: 1, OutputTokens: 1}, "0.0000003"},
		{flat(0.05, 0, 0.05), provider.Usage{InputTokens: 3}, "0.00000015"},
		{flat(1, 1, 1), provider.Usage{InputTokens: 1 << 40, OutputTokens: 1 << 40}, "2199023.255552"},
		{Price{}, usage, "0"},
		{Price{}, provider.Usage{}, "0"},
		{scheduledPrice(Rates{}, Step{999, Rates{Input: 1}}), usage, "0.0001"}, // free, but for long prompts
		{flat(1, 1, 1), provider.Usage{}, "unknown"},
		{flat(1, 1, 0), provider.Usage{CachedTokens: 5}, "unknown"},
		{flat(1, 1, 0), provider.Usage{InputTokens: 5, CachedTokens: 9}, "0"},
		{flat(0, 1, 0), provider.Usage{InputTokens: 5}, "0"},
		{flat(1e-6, 0, 0), provider.Usage{InputTokens: 1}, "0.000000000001"},
		{flat(1e9, 1, 1), provider.Usage{InputTokens: 1 << 40}, "unknown"},
		{flat(math.MaxFloat64, 1, 1), provider.Usage{InputTokens: 1 << 40}, "unknown"},
		{flat(1, 1, 1), provider.Usage{InputTokens: -5}, "unknown"},
	} {
		cost, known := tt.price.Of(tt.usage, friday)
		got := strconv.FormatFloat(cost.USD(), 'f', -1, 64)
		if !known {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%+v of %+v: %s, want %s", tt.usage, tt.price, got, tt.want)
		}
	}
}

// An estimate steps up with its prompt, as a cost does.
func TestEstimate(t *testing.T) {
	p := scheduledPrice(Rates{1, 4, 0.1, 1, 1}, Step{200_000, Rates{2, 6, 0.2, 2, 2}})
	for input, want := range map[float64]float64{200_000: 0.2 + 0.004, 200_001: 0.400002 + 0.006} {
		if got := p.Estimate(input, 1000, friday).USD(); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v tokens: %v, want %v", input, got, want)
		}
	}
}

// What items cost adds up to what all their tokens cost, and each reads as it would by hand.
func TestCostsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for range 200 {
		p := scheduledPrice(Rates{float64(rng.IntN(4000)) / 100, float64(rng.IntN(9000)) / 100, float64(rng.IntN(4000)) / 1000, float64(rng.IntN(5000)) / 100, 0})
		var all provider.Usage
		var sum limiter.Money
		for range 1000 {
			in := rng.Int64N(100_000)
			u := provider.Usage{InputTokens: in + 1, OutputTokens: rng.Int64N(10_000), CachedTokens: rng.Int64N(in/2 + 1), CacheWriteTokens: rng.Int64N(in/2 + 1)}
			cost, known := p.Of(u, friday)
			usd := cost.USD()
			if _, digits, _ := strings.Cut(strconv.FormatFloat(usd, 'f', -1, 64), "."); !known || len(digits) > 12 {
				t.Fatalf("%+v of %+v: %v, %v", u, p, usd, known)
			}
			all, sum = all.Add(u), sum.Plus(cost)
		}
		if want, _ := p.Of(all, friday); sum != want { // to the picodollar
			t.Fatalf("%+v of %+v: %v, and the sum is %v", all, p, want, sum)
		}
	}
}

// To ask for a cost allocates nothing: a run asks for each item.
func TestCostAllocatesNothing(t *testing.T) {
	table := givenTable(t, "", "", "gemini")
	usage := provider.Usage{InputTokens: 10, OutputTokens: 10}
	for _, model := range []string{"gemini-2.5-flash", "gemini-2.5-flash-2026-08-06", "models/gemini-3.8-flash-001", "whatever"} {
		if n := testing.AllocsPerRun(100, func() { table.Cost(model, usage, friday) }); n != 0 {
			t.Errorf("%s: %v allocations", model, n)
		}
	}
}

// FuzzCost: for any prices and tokens, a cost is a number of 0 or more or is not known, and
// a line's cost is read back the same.
func FuzzCost(f *testing.F) {
	f.Add("2.5,10,1.25", int64(1000), int64(100), int64(600), int64(30))
	f.Add("0,0", int64(0), int64(0), int64(0), int64(0))
	f.Add("1e-300,1e300", int64(1)<<40, int64(3), int64(-1), int64(-1))
	f.Add("0.1,0.2", int64(-3), int64(1)<<62, int64(1)<<62, int64(1)<<62)
	f.Fuzz(func(t *testing.T, others string, in, out, cached, written int64) {
		table, err := Read("", others, "")
		if err != nil {
			return
		}
		l := journal.Line{}
		cost, _, known := table.Cost("m", provider.Usage{InputTokens: in, OutputTokens: out, CachedTokens: cached, CacheWriteTokens: written}, friday)
		usd := cost.USD()
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

// A price for all models is that of the standard tier: a vendor whose tiers all have one factor asks for
// that. Of any other vendor, a tier has no known price.
func TestPriceForAllModelsInATier(t *testing.T) {
	for vendor, want := range map[string]float64{"openai": 0.006, "gemini": 0.006, "bedrock": -1, "local": -1} {
		table, err := Read("", "2,10", vendor)
		if err != nil {
			t.Fatal(err)
		}
		got, now := -1.0, time.Now()
		if cost, _, known := table.Cost("m", provider.Usage{InputTokens: 1000, OutputTokens: 1000, Tier: provider.FlexTier}, now); known {
			got = cost.USD()
		}
		p, _, _ := table.Of("m")
		estimate, known := p.EstimateIn(provider.FlexTier, 1000, 1000, now)
		if got != want || known != (want > 0) || known && estimate.USD() != want {
			t.Errorf("%s: %v, and %v as estimated, want %v", vendor, got, estimate, want)
		}
	}
}

// Of several cases for one tier the last that holds counts, in an estimate as in a bill. A price of the user's own for a tier
// comes before the factor of the list.
func TestEstimateInTheLastCaseOfATier(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for when, want := range map[string]float64{
		`[{"tier":"flex","times":0.5},{"tier":"flex","from":"2026-11-01","times":0.4}]`:              0.4,
		`[{"tier":"flex","times":0.5},{"tier":"flex","from":"2026-12-01","times":0.4}]`:              0.5,
		`[{"tier":"flex","times":0.5},{"tier":"flex","from":"2026-11-01","input":0.3,"output":0.3}]`: 0.3,
	} {
		table := givenTable(t, `{"m":{"input":1,"output":1,"when":`+when+`}}`, "", "openai")
		billed, _, known := table.Cost("m", provider.Usage{InputTokens: 1e6, Tier: provider.FlexTier}, at)
		p, _, _ := table.Of("m")
		estimate, estimated := p.EstimateIn(provider.FlexTier, 1e6, 0, at)
		if !known || !estimated || billed.USD() != want || estimate.USD() != want {
			t.Errorf("%s: billed %v, estimated %v, want %v", when, billed.USD(), estimate.USD(), want)
		}
	}
	p := Price{Schedule: Schedule{Rates: Rates{Input: 1, Output: 1}}, When: []Case{{Tier: provider.FlexTier, Times: 0.4}}}
	p.addTiers(map[string]float64{"flex": 0.5, "priority": 2})
	for tier, want := range map[provider.Tier]float64{provider.FlexTier: 0.4, provider.PriorityTier: 2} {
		if cost, known := p.EstimateIn(tier, 1e6, 0, at); !known || cost.USD() != want {
			t.Errorf("%v: %v, want %v", tier, cost.USD(), want)
		}
	}
}
