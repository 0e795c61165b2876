package machine

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A field that the chosen law does not use is refused and not ignored. Every field of
// LaneConfig is looked at under each law: a new one must be in the table.
func TestFieldsThatTheLawDoesNotUse(t *testing.T) {
	type uses struct{ model, plain, none bool }
	table := map[string]uses{
		"Limits": {true, true, false}, "Target": {true, true, false}, "Errors": {true, true, false},
		"Window": {true, true, true}, "Law": {true, true, true}, "Breaker": {true, true, true}, "Maker": {true, true, true},
		"Charge": {true, true, true}, "Periods": {true, true, true},
		"AttemptTimeout": {true, true, true}, "ItemTimeout": {true, true, true}, "MaxAttempts": {true, true, true}, "Account": {true, true, true},
		"Local": {true, false, false},
		"Rate":  {false, true, false}, "Ramp": {false, true, false}, "Cooldown": {false, true, false},
	}
	given := LaneConfig{
		Limits: limiter.Limits{RPM: 60}, Window: 1, Local: true, Target: time.Second,
		Rate: limiter.RateConfig{Floor: 1}, Ramp: limiter.RampConfig{Initial: 1}, Cooldown: limiter.CooldownConfig{Base: time.Second},
		Breaker: limiter.BreakerConfig{Consecutive: 3}, Errors: limiter.ErrorWindowConfig{High: 0.5},
		Maker:  &maker{},
		Charge: limiter.Charge{Rule: limiter.ChargeBoth}, Periods: limiter.Periods{{Per: time.Minute}}, AttemptTimeout: time.Minute,
		ItemTimeout: time.Minute, MaxAttempts: 3, Account: "acme",
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[LaneConfig]()) {
		want, ok := table[field.Name]
		if !ok {
			t.Errorf("%s: a field that this table does not know", field.Name)
		}
		for _, law := range []limiter.LawName{limiter.Model, limiter.Plain, limiter.NoLaw} {
			var c LaneConfig
			if field.Name != "Law" && reflect.ValueOf(given).FieldByIndex(field.Index).IsZero() {
				t.Errorf("%s: no value of it is tried", field.Name)
			}
			reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(given).FieldByIndex(field.Index))
			c.Law = law
			err := c.Validate()
			if used := map[limiter.LawName]bool{limiter.Model: want.model, limiter.Plain: want.plain, limiter.NoLaw: want.none}[law]; used != (err == nil) {
				t.Errorf("%s under the %v law: %v", field.Name, law, err)
			}
			if err != nil && (!strings.Contains(err.Error(), law.String()+" law") || !strings.Contains(err.Error(), strings.ToLower(field.Name[:4]))) {
				t.Errorf("%s under the %v law: %v: names neither", field.Name, law, err)
			}
		}
	}
}

// Of the rate, the model law takes a first guess. What the parts themselves cannot mean,
// and a law that there is not, is refused.
func TestPartsOfALaneAreValidated(t *testing.T) {
	if err := (LaneConfig{Rate: limiter.RateConfig{Initial: 5}}).Validate(); err != nil {
		t.Error(err)
	}
	plain := LaneConfig{Law: limiter.Plain}
	for word, spoil := range map[string]func(*LaneConfig){
		"ramp":         func(c *LaneConfig) { c.Ramp.Initial = -1 },
		"rate":         func(c *LaneConfig) { c.Rate.Floor = -1 },
		"breaker":      func(c *LaneConfig) { c.Breaker.Window = -1 },
		"error window": func(c *LaneConfig) { c.Errors.High = 30 },
		"target":       func(c *LaneConfig) { c.Target = -1 },
		"law":          func(c *LaneConfig) { c.Law = 7 },
	} {
		c := plain
		if spoil(&c); c.Validate() == nil || !strings.Contains(c.Validate().Error(), word) {
			t.Errorf("%s: %v", word, c.Validate())
		}
	}
}
