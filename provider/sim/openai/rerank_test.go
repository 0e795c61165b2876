package openai_test

import (
	"testing"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/simtest"
)

// Documents are ranked, the best first, by scores of their own and the query's. The charge covers
// all texts read, the query too.
func TestRerank(t *testing.T) {
	s := server(sim.Config{})
	const four = `{"model":"m","query":"which river?","documents":["Inn","Enns",{"text":"Mur"},"Drau"]}`
	a := simtest.Ask(t, s, "/v1/rerank", four)
	last, seen := 2.0, map[float64]string{}
	for _, result := range a.Body.Get("results").Array() {
		if score := result.Get("relevance_score").Num; score > last || score < 0 || score > 1 {
			t.Errorf("%s", a.Body.Raw)
		}
		last = result.Get("relevance_score").Num
		seen[result.Get("index").Num] = result.Get("document.text").Str
	}
	if a.Status != 200 || len(seen) != 4 || seen[2] != "Mur" || a.Body.Get("usage.total_tokens").Num != 7 || a.Body.Get("usage.prompt_tokens").Exists() {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	if b := simtest.Ask(t, s, "/v1/rerank", four[:len(four)-1]+`,"top_n":2}`).Body; b.Get("results.#").Num != 2 || b.Get("results.0").Raw != a.Body.Get("results.0").Raw {
		t.Error(b.Raw)
	}
	other := simtest.Ask(t, s, "/v1/rerank", `{"documents":["Inn","Enns","Mur","Drau"],"model":"m","query":"which one?"}`).Body
	if other.Get("results.0.relevance_score").Num == a.Body.Get("results.0.relevance_score").Num || other.Get("usage.total_tokens").Num != 6 {
		t.Error(other.Raw)
	}
	for _, bad := range []string{`{"model":"m","query":"q"}`, `{"model":"m","documents":["a"]}`, `{"query":"q","documents":["a"]}`} {
		if a := simtest.Ask(t, s, "/v1/rerank", bad); a.Status != 400 {
			t.Errorf("%s: %d %s", bad, a.Status, a.Body.Raw)
		}
	}
}
