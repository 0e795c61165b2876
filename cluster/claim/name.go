package claim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Chunk names a chunk that can be claimed.
type Chunk struct {
	Job    string
	Number int // from 0, in the order of the input
	Round  int // 0: the first run; n: the n-th retry of failed items
}

func (c Chunk) String() string {
	if c.Round == 0 {
		return fmt.Sprintf("%s/%d", c.Job, c.Number)
	}
	return fmt.Sprintf("%s/%d.r%d", c.Job, c.Number, c.Round)
}

// A Name is the name of a claim's journal: the worker, and the claim's turn among those of its chunk. No two
// claims share a name. Of two claims of one chunk the one with the later name holds it: the higher turn, or
// the greater worker's name if both took the same turn at once.
type Name struct {
	Turn  int    // from 1; 0 is no name
	Who   string // the worker: a name that is new with each life of a process
	Claim ID     // among those of the worker
}

// turnDigits is the least number of digits of a turn, so that a store lists names in their order. A chunk is
// claimed once, and a few times more in a storm.
const turnDigits = 4

func (n Name) String() string { return fmt.Sprintf("%0*d-%s.%d", turnDigits, n.Turn, n.Who, n.Claim) }

// ParseName undoes String. It returns false for a name that no claim has written.
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

// Compare orders names by turn, then by worker, then by claim.
func (n Name) Compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Turn, o.Turn), strings.Compare(n.Who, o.Who), cmp.Compare(n.Claim, o.Claim))
}
