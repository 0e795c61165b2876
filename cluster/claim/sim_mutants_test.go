package claim

import "testing"

const (
	// enough bounds the worlds needed to find each mutant,
	enough = 100
	// and these are the first of them; from other seeds on one of fifty searches takes longer.
	firstSeed = 1000
)

// The checker finds every mutant that breaks a rule of the protocol: it is not blind.
func TestMutantsAreFound(t *testing.T) {
	for m := whole + 1; m <= keeperForgets; m++ {
		t.Run(mutants[m].name, func(t *testing.T) {
			for seed := range uint64(enough) {
				p := plan{seed: firstSeed + seed, theme: mutants[m].theme, mutant: m}
				if _, why := simulate(p, nil); why != "" {
					t.Logf("in world %d: %s", seed, why)
					return
				}
			}
			t.Errorf("not found within %d worlds", enough)
		})
	}
}
