package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// writeBounded writes prompts with a bound on their answer: bounded FILE N.
func writeBounded(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"prompt\":\"Name three rivers of country %d, and say why.\",\"id\":\"r%d\",\"max_tokens\":50}\n", i, i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// checkWithin compares what the lines of a file have cost with bounds: within FILE FROM TO.
func checkWithin(ts *testscript.TestScript, _ bool, args []string) {
	var sum float64
	for line := range bytes.Lines([]byte(ts.ReadFile(args[0]))) {
		var l struct {
			Headrace struct {
				USD float64 `json:"cost_usd"`
			}
		}
		ts.Check(json.Unmarshal(line, &l))
		sum += l.Headrace.USD
	}
	from, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	to, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	if sum < from || sum > to+1e-9 {
		ts.Fatalf("%s: its lines cost %v, want %v to %v", args[0], sum, from, to)
	}
}
