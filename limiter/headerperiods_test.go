package limiter

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The first period that fits holds, and the zero value knows none.
func TestHeaderPeriods(t *testing.T) {
	const day = 24 * time.Hour
	groq := Periods{{"openai", Requests, day}, {"openai", None, time.Minute}, {"", InputTokens, time.Second}}
	for _, tt := range []struct {
		family string
		on     Dimension
		want   time.Duration
	}{
		{"openai", Requests, day},
		{"openai", Tokens, time.Minute},
		{"openai", InputTokens, time.Minute},
		{"anthropic", InputTokens, time.Second},
		{"anthropic", Requests, 0},
		{"", Requests, 0},
	} {
		if got := groq.Of(tt.family, tt.on); got != tt.want {
			t.Errorf("%q %v: %v, want %v", tt.family, tt.on, got, tt.want)
		}
	}
	if none := (Periods{}); none.Of("openai", Requests) != 0 || none.Validate() != nil {
		t.Error("the zero value knows a period")
	}
	if err := groq.Validate(); err != nil {
		t.Error(err)
	}
	for _, p := range []Periods{{{Family: "x"}}, {{}, {Per: -1}}, {{On: 9, Per: 1}}, {{Per: 32 * day}}} {
		if err := p.Validate(); !errors.Is(err, ErrPeriods) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := (&Periods{{On: Requests, Family: "x"}}).Validate(); err == nil || !strings.HasSuffix(err.Error(), `family "x": 0s is out of range: want more than 0s and at most 744h0m0s`) {
		t.Error(err)
	}
}
