package price

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
)

// The costs of some hundred usages are those that genai-prices computes, to a millionth of a
// dollar: with caches, thoughts, long prompts, and prices of other days and hours. The
// answers are read as a run reads them, and its count of tokens is that of genai-prices. For xAI
// both count thoughts as output. refresh writes the file.
func TestAgainstGenaiPrices(t *testing.T) {
	f, err := os.Open("testdata/oracle.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tables := map[string]Table{}
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c struct {
			Vendor, Model string
			At            time.Time
			USD           float64
			Input, Output int64
			Answer        json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if _, ok := tables[c.Vendor]; !ok {
			tables[c.Vendor] = givenTable(t, "", "", c.Vendor)
		}
		table := tables[c.Vendor]
		reply, fault := provider.ReplyOf(200, nil, c.Answer)
		u := reply.Usage
		if fault != nil || u.InputTokens != c.Input || u.OutputTokens != c.Output {
			t.Errorf("%s: %+v, %v", lines.Bytes(), u, fault)
		}
		cost, source, known := table.Cost(c.Model, u, c.At)
		if usd := cost.USD(); !known || source != FromTable() || math.Abs(usd-c.USD) > 1e-6 {
			t.Errorf("%s: %v, %s, %v, want %v", lines.Bytes(), usd, source, known, c.USD)
		}
		if u.Tier = provider.FlexTier; c.Vendor == "openai" { // the data know no tiers: flex is half
			if cost, _, known := table.Cost(c.Model, u, c.At); !known || math.Abs(cost.USD()-c.USD/2) > 1e-6 {
				t.Errorf("%s: flex: %v, %v, want %v", lines.Bytes(), cost.USD(), known, c.USD/2)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d usages", n)
	}
}

// The list takes little room in a packed binary.
func TestListIsSmall(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(listJSON); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || packed.Len() > 90_000 {
		t.Errorf("%d bytes, %v", packed.Len(), err)
	}
}
