package promptfile

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// An answer that nests as deep as a client takes is saved, is no damage to its file, and is
// not bought again, as the answers come or in the order of the input.
func TestDeepAnswersAreBoughtOnce(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		d := newDesk(t, ask("a"), ask("b"), ask("c"))
		d.cfg.InputOrder, d.cfg.Checked = ordered, true
		deep := map[string]int{"a": 9998, "b": 9999, "c": 10_000}
		d.answer = func(it *Item) (provider.Reply, error) {
			n := deep[it.ID]
			return provider.Reply{Status: 200, Body: []byte(strings.Repeat("[", n) + strings.Repeat("]", n))}, nil
		}
		sums, _, err := d.run()
		if err != nil || sums.Succeeded != 3 {
			t.Fatalf("ordered %t: %+v, %v", ordered, sums, err)
		}
		sums, asked, err := d.run()
		if err != nil || sums.EarlierDone != 3 || asked != "" {
			t.Errorf("ordered %t: once more %+v, %v, asked %s", ordered, sums, err, asked)
		}
	}
}
