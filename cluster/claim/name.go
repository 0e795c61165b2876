package claim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Chunk names what is claimed.
type Chunk struct {
	Job    string
	Number int // from 0, in the order of the input
	Round  int // 0: of the first run; n: of the n-th that tries again what failed
}

func (c Chunk) String() string {
	if c.Round == 0 {
		return fmt.Sprintf("%s/%d", c.Job, c.Number)
	}
	return fmt.Sprintf("%s/%d.r%d", c.Job, c.Number, c.Round)
}

// A Name is that of a claim's journal: whose claim it is, and the how-manieth of its chunk. No two
// claims have the same. Of two claims of one chunk the one with the later name holds: the higher turn,
// and of two that took the same turn at once the one whose worker's name is greater.
type Name struct {
	Turn  int    // from 1; 0 is no name
	Who   string // the worker: a name that is new with each life of a process
	Claim ID     // among those of the worker
}

// turnDigits is how many digits a turn has at least, so that names stand in their order where
// a store lists them: a chunk is claimed once, and a few times more in a storm.
const turnDigits = 4

func (n Name) String() string { return fmt.Sprintf("%0*d-%s.%d", turnDigits, n.Turn, n.Who, n.Claim) }

// ParseName is String undone: false for what no claim has written.
func ParseName(s string) (Name, bool) {
	digits, rest, _ := strings.Cut(s, "-")
	last := strings.LastIndexByte(rest, '.')
	if last < 1 {
		return Name{}, false
	}
	turn, err := strconv.Atoi(digits)
	claim, fault := strconv.ParseUint(rest[last+1:], 10, 64)
	n := Name{turn, rest[:last], ID(claim)}
	return n, err == nil && fault == nil && turn > 0 && n.String() == s
}

// Compare orders names as their claims came.
func (n Name) Compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Turn, o.Turn), strings.Compare(n.Who, o.Who), cmp.Compare(n.Claim, o.Claim))
}
