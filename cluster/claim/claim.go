package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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

// A state is a stage of a claim. While nothing goes wrong a claim goes from each to the next.
type state uint8

const (
	looking  state = iota // is the part there?
	listing               // who has claimed the chunk before?
	asking                // do they hold it? Again for those that turn up in settling
	naming                // its own journal is being made
	settling              // who has claimed the chunk meanwhile?
	checking              // is the part there by now?
	reading               // what is in the journals of others?
	working               // its items are fed, called and saved
	closing               // its journal is being closed
	joining               // the part is being made
	acking                // the queue is being told
	cleaning              // the journals are being deleted
	gone                  // it is over
)

// An exit is the reason why a claim leaves early. Of two reasons, the one listed later counts.
type exit uint8

const (
	stays   exit = iota // it does not leave
	back                // the chunk goes back to the queue
	dropped             // the job is canceled: the queue hears that nothing is left to do
	lost                // another worker has the chunk, and will answer the queue
)

// A claim is the work of one worker on one chunk.
type claim struct {
	id       ID
	delivery ID // the latest of this chunk: the one to answer
	chunk    Chunk
	state    state

	exit  exit
	after time.Duration // of back: the delay before it may be given out again
	why   string

	name     Name   // of its own journal; Turn 0: it has none yet
	names    []Name // of all journals of the chunk, as they were listed last
	vanished bool   // its own journal, or one of those, was deleted: the part should be there

	asked   []Name   // about which journals their workers were asked, ever
	asks    []string // workers asked last that have not answered,
	mute    []string // those of them that cannot be reached,
	dead    []string // and all that are taken for dead
	unheard bool     // the bus may not have announced the takeover yet
	askedAt time.Time
	late    time.Time // when an answer comes too late; zero: the question may not have left yet
	proof   time.Time // when the latest heartbeat was sent that was acknowledged promptly

	beating  bool      // a heartbeat is under way
	beatSent time.Time // when the latest one was sent
	beatAt   time.Time // when the next one is due
	heard    time.Time // when the latest one that was acknowledged was sent

	// sure is the time up to which the chunk is this claim's beyond doubt. A heartbeat was sent then
	// and acknowledged. Either it came in time after the one before, or a later list shows no later
	// claim. After doubted only such a list helps.
	sure, doubted time.Time
	inspecting    bool      // such a list is under way,
	inspected     time.Time // begun then,
	backed        time.Time // after the heartbeat that was sent then
	inspectAt     time.Time // not before that, after one that failed

	read     bool         // to its end
	items    map[int]bool // that have not ended; true: a call is in flight
	withheld []int        // whose calls wait until there is no doubt
	flying   int
	unsaved  int  // results on their way to the journal
	flushed  bool // they are being flushed
	wrote    bool // something is in the journal, or on its way there
	broken   bool // it takes no more

	tries int       // of the join, or of the ack
	tryAt time.Time // the next one; zero: one is under way
	sent  time.Time // the latest ack
}

func (c *claim) named() bool { return c.name.Turn > 0 }

// unaskedWorkers returns the workers whose journals nobody has asked about yet, and marks them as asked. A
// worker that said no may have made another journal since.
func (c *claim) unaskedWorkers(me string) (who []string) {
	for _, n := range c.names {
		if n.Who == me || slices.Contains(c.asked, n) {
			continue
		}
		c.asked = append(c.asked, n)
		if !slices.Contains(who, n.Who) {
			who = append(who, n.Who)
		}
	}
	return who
}

// setNames records the journals of the chunk, in the order of their names.
func (c *claim) setNames(names []Name) {
	c.names = slices.Clone(names)
	slices.SortFunc(c.names, Name.Compare)
}

// overtakenBy returns the latest claim of the chunk; is reports whether that is later than this one.
func (c *claim) overtakenBy() (by Name, is bool) {
	if len(c.names) == 0 {
		return Name{}, false
	}
	latest := c.names[len(c.names)-1]
	return latest, latest.Compare(c.name) > 0
}

// earlierNames returns the names of the journals of earlier claims.
func (c *claim) earlierNames() []Name {
	return slices.DeleteFunc(slices.Clone(c.names), func(n Name) bool { return n.Compare(c.name) >= 0 })
}
