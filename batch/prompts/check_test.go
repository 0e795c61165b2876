package prompts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"
)

// Check tells what is in a file, lists bad lines up to its bound, and counts all.
func TestCheckSumsUp(t *testing.T) {
	text := `{"prompt":"a"}` + "\n\n" + `{"model":"e-embed","input":"x"}` + "\n" + `{"prompt":"a","model":"x"}` + "\n" +
		strings.Repeat("{x}\n", MaxComplaints+5)
	sum, bad, err := Check(NewReader(strings.NewReader(text), Config{DefaultModel: "m"}))
	if err != nil || len(bad) != MaxComplaints || sum.Bad != MaxComplaints+5 || bad[0].Line != 5 {
		t.Fatalf("%d complaints of %d, error %v", len(bad), sum.Bad, err)
	}
	if sum.Items != 3 || sum.Lines != 4+MaxComplaints+5 || sum.Bytes == 0 {
		t.Errorf("summary %+v", sum)
	}
	if !maps.Equal(sum.Models, map[string]int{"m": 1, "e-embed": 1, "x": 1}) ||
		!maps.Equal(sum.Endpoints, map[string]int{ChatCompletions: 2, Embeddings: 1}) {
		t.Errorf("summary %+v", sum)
	}
}

// Check of an input that breaks gives the fault and what came before it.
func TestCheckTellsAFault(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("{\"prompt\":\"a\"}\n"), iotest.ErrReader(broken))
	sum, bad, err := Check(NewReader(in, Config{DefaultModel: "m"}))
	if !errors.Is(err, broken) || sum.Items != 1 || sum.Lines != 1 || len(bad) != 0 {
		t.Errorf("%+v %v %v", sum, bad, err)
	}
}

// A file that names a new model on each line fills neither reader nor summary.
func TestModelsAreBounded(t *testing.T) {
	var text bytes.Buffer
	for i := range 2 * MaxModels {
		fmt.Fprintf(&text, `{"prompt":"a","model":"m%d"}`+"\n", i)
	}
	r := NewReader(&text, Config{})
	sum, _, _ := Check(r)
	if len(sum.Models) != MaxModels || sum.OtherModels != MaxModels || len(r.models) != knownModels {
		t.Errorf("%d models, %d others, %d known", len(sum.Models), sum.OtherModels, len(r.models))
	}
}
