package event

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// The picture of a lane is valid JSON whatever is known: what is unlimited is null, and
// debt is less than nothing.
func TestLanePictureForPrograms(t *testing.T) {
	l := observe.Lane{LaneStatus: machine.LaneStatus{
		Name: "l", Rate: math.Inf(1), Breaker: limiter.HalfOpen, Failures: 4,
		FirstDue: in(time.Second), LastDue: in(time.Minute),
		Level: machine.Levels{Requests: math.Inf(1), Tokens: -2.5, InputTokens: 7, OutputTokens: math.NaN()},
	}}
	e := Of(&observe.Picture{At: noon, Began: noon, OfLanes: 1, Open: 2, HalfOpen: 1, Lanes: []observe.Lane{l}}, here)
	out, err := json.Marshal(e)
	var got map[string]any
	if err != nil || json.Unmarshal(out, &got) != nil || got["breakers_open"] != 2.0 || got["breakers_half_open"] != 1.0 {
		t.Fatalf("%v: %s", err, out)
	}
	if want := `"breaker":"half-open","failures_in_row":4,"first_due_s":1,"last_due_s":60,` +
		`"level":{"requests":null,"tokens":-2.5,"input_tokens":7,"output_tokens":null}}]}`; !strings.HasSuffix(string(out), want) {
		t.Errorf("it does not end in %s: %s", want, out)
	}
}
