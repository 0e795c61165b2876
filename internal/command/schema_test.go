package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// schemaFile is the contract of --progress json.
const schemaFile = "../../docs/progress.schema.json"

// A contract checks lines of --progress json against the schema, and, which a reader must
// not, that there is nothing in them that the schema does not know.
type contract struct {
	schema *jsonschema.Schema
	events map[string]bool
	first  bool // a start was seen
	last   bool // a summary was seen
	faults []error
}

func newContract(file string) (*contract, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	doc, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		return nil, err
	}
	c := &contract{events: map[string]bool{}}
	for name, def := range doc.(map[string]any)["$defs"].(map[string]any) {
		if of, ok := def.(map[string]any)["properties"].(map[string]any); ok && of["event"] != nil {
			c.events[name] = true
		}
	}
	closed(doc)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("progress.json", doc); err != nil {
		return nil, err
	}
	c.schema, err = compiler.Compile("progress.json")
	return c, err
}

// closed lets objects have no properties but those that are named, in all of a schema but
// its top.
func closed(v any) {
	for name, of := range v.(map[string]any) {
		switch of := of.(type) {
		case map[string]any:
			if of["properties"] != nil && name != "if" {
				of["additionalProperties"] = false
			}
			closed(of)
		case []any:
			for _, one := range of {
				if m, ok := one.(map[string]any); ok {
					if m["properties"] != nil {
						m["additionalProperties"] = false
					}
					closed(m)
				}
			}
		}
	}
}

// line checks one line; what is no object is not of the contract.
func (c *contract) line(line string) {
	if !strings.HasPrefix(line, "{") {
		return
	}
	if err := c.check(line); err != nil {
		c.faults = append(c.faults, fmt.Errorf("%w: %s", err, strings.TrimSpace(line)))
	}
}

func (c *contract) check(line string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return err
	}
	name, is := v.(map[string]any)["event"].(string)
	switch {
	case !is && !c.first:
		return errors.New("the log begins before the start")
	case !is:
		return nil
	case !c.events[name]:
		return fmt.Errorf("the schema knows no event %q", name)
	case c.last && name != "start":
		return errors.New("the summary is not the last event")
	case !c.last && c.first == (name == "start"): // after a pilot another run starts
		return errors.New("the start is not the first line, or not the only one")
	}
	c.first, c.last = true, name == "summary"
	if name == "summary" {
		if err := addsUp(line); err != nil {
			return err
		}
	}
	return c.schema.Validate(v)
}

// addsUp checks that what held a run back is all of its time.
func addsUp(line string) error {
	var s struct {
		ElapsedS float64            `json:"elapsed_s"`
		BoundS   map[string]float64 `json:"bound_s"`
		Calls    int                `json:"calls"`
	}
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		return err
	}
	sum := 0.0
	for _, x := range s.BoundS {
		sum += x
	}
	if off := sum - s.ElapsedS; s.Calls > 0 && (off > 0.001 || off < -0.001) {
		return fmt.Errorf("bound_s sums to %v, and elapsed_s is %v", sum, s.ElapsedS)
	}
	return nil
}

// contractBroken is the exit code of a command under test whose events break the contract.
const contractBroken = 99

// checkedMain is the command of scripts and of processes that tests start: what it says with
// --progress json is held against the schema.
func checkedMain() {
	file, isSet := os.LookupEnv(schemaVariable)
	if !isSet || !slices.Contains(os.Args, settings.ProgressJSON) && !slices.Contains(os.Args, "--progress=json") {
		os.Exit(Main())
	}
	c, err := newContract(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(contractBroken)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	stderr, over := os.Stderr, make(chan struct{})
	os.Stderr = w
	go func() {
		defer close(over)
		c.pass(stderr, r)
	}()
	code := Main()
	_ = w.Close()
	<-over
	for _, err := range c.faults {
		fmt.Fprintln(stderr, "the contract is broken:", err)
		code = contractBroken
	}
	os.Exit(code)
}

// schemaVariable tells processes that tests start where the schema is.
const schemaVariable = "TEST_PROGRESS_SCHEMA"

// pass checks lines and passes them on as they come.
func (c *contract) pass(to io.Writer, from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		_, _ = io.WriteString(to, line)
		if c.line(line); err != nil {
			return
		}
	}
}

// keeps checks the lines of a command that ran in the test's own process.
func keeps(t *testing.T, stderr string) {
	t.Helper()
	c := must.Get(newContract(schemaFile))(t)
	c.pass(io.Discard, strings.NewReader(stderr))
	for _, err := range c.faults {
		t.Error(err)
	}
}

// The check of the contract notices what breaks it.
func TestContractNoticesFaults(t *testing.T) {
	start := `{"event":"start","format":"1.0","headrace":"v1","run":"r","at":"2026-11-21T15:16:00.000Z","input":"i","output":"o","errors":"e",` +
		`"timeline":null,"items":3,"before":0,"concurrency":64,"settings":[{"name":"rpm","value":"3","from":"flag"}]}` + "\n"
	notice := `{"event":"notice","message":"m","at":"2026-11-21T15:16:00.000Z","code":"simulated"}` + "\n"
	for name, lines := range map[string]string{
		"no start":       notice,
		"two starts":     start + start,
		"a new field":    start + strings.Replace(notice, `"code"`, `"codes":1,"code"`, 1),
		"no code":        start + strings.Replace(notice, `,"code":"simulated"`, "", 1),
		"an own clock":   start + strings.Replace(notice, "2026-11-21T15:16:00.000Z", "15:16", 1),
		"a new event":    start + `{"event":"moon"}` + "\n",
		"broken JSON":    start + notice[:20] + "\n",
		"another origin": strings.Replace(start, `"from":"flag"`, `"from":"moon"`, 1),
		"another format": strings.Replace(start, `"1.0"`, `"2.0"`, 1),
	} {
		c := must.Get(newContract(schemaFile))(t)
		if c.pass(io.Discard, strings.NewReader(lines)); len(c.faults) != 1 {
			t.Errorf("%s: %v", name, c.faults)
		}
	}
	keeps(t, start+notice+"headrace: a line of text\n"+`{"time":"t","msg":"a line of the log"}`+"\n")
}
