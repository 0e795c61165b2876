package plan

import (
	"testing"
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/limiter"
)

// However long the answers are that lines allow, their times add up to more, and never to less
// than nothing.
func TestAbsurdAnswersTakeLong(t *testing.T) {
	same := func(string) string { return "m" }
	for _, tokens := range []string{"1000000000000", "1e300", "1e400"} {
		p := New(Config{
			Row: same, Quota: same, Concurrency: 2, Prices: price.Table{},
			Cost: func(*prompts.Request) limiter.Cost { return limiter.Cost{Requests: 1, Input: 1} },
		})
		for range 5 {
			p.Take(prompts.Request{Endpoint: prompts.ChatCompletions, Model: "m", Body: []byte(`{"max_tokens":` + tokens + `,"messages":[]}`)})
		}
		p.Foresee(5, 0, 0)
		if took := p.forecast.Took; tokens != "1e400" && took < 365*24*time.Hour || took < 0 { // no number is as large as the last
			t.Errorf("%s tokens: %v", tokens, took)
		}
		for _, x := range p.whatIfs {
			if x.halved < 0 || x.double < 0 {
				t.Errorf("%s tokens: %+v", tokens, x)
			}
		}
	}
}
