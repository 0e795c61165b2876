package machine

import "testing"

// The proof wants both sums: an item or a call too many or too few, on either side, is
// no proof.
func TestProofWantsBothSums(t *testing.T) {
	whole := Counters{Offered: 5, Settled: 3, Released: 2, Calls: 7, HandedOver: 4}
	if !whole.Proves() {
		t.Errorf("%+v does not prove", whole)
	}
	for name, change := range map[string]func(*Counters){
		"offered":     func(c *Counters) { c.Offered++ },
		"released":    func(c *Counters) { c.Released-- },
		"calls":       func(c *Counters) { c.Calls++ },
		"handed over": func(c *Counters) { c.HandedOver-- },
	} {
		c := whole
		change(&c)
		if c.Proves() {
			t.Errorf("%s: %+v proves", name, c)
		}
	}
}
