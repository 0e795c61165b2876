package batch

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A document is an input so large that it matters whether it is held.
type document struct {
	text string
	back int // how often its call is refused before it is answered
	slow time.Duration
}

// Pool is a piece of the text: to hold it is to hold all of it.
func (d *document) Pool() string { return d.text[:1] }

// A library makes documents, and knows which of them are held by anybody.
type library struct {
	made  []weak.Pointer[document]
	texts []weak.Pointer[byte]
}

func (l *library) documents(n int, fill func(i int, d *document)) iter.Seq[*document] {
	return func(yield func(*document) bool) {
		for i := range n {
			d := &document{text: strings.Repeat(string(rune('a'+i%7)), 1<<10)}
			fill(i, d)
			l.made = append(l.made, weak.Make(d))
			l.texts = append(l.texts, weak.Make(unsafe.StringData(d.text)))
			if !yield(d) {
				return
			}
		}
	}
}

// held counts the documents of which anything is still held.
func (l *library) held() (n int) {
	runtime.GC()
	for i := range l.made {
		if l.made[i].Value() != nil || l.texts[i].Value() != nil {
			n++
		}
	}
	return n
}

// A run holds no input beyond its read-ahead and its concurrency, however slow one of
// them is and however many pass it: what has its result is let go.
func TestFinishedInputsAreLetGo(t *testing.T) {
	const ahead, workers, passing = 6, 4, 3000
	const inHand = 2 // by the iterator and the loop, for all that is known of them
	for name, fill := range map[string]func(i int, d *document){
		"calls":     func(int, *document) {},
		"comebacks": func(i int, d *document) { d.back = i % 3 },
		"three slow": func(i int, d *document) {
			if i == 70 || i == 700 {
				d.slow = 24 * time.Hour
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l library
				fn := func(ctx context.Context, d *document) (int, error) {
					pause(ctx, d.slow)
					if d.back--; d.back >= 0 {
						return 0, RetryAfter(time.Millisecond, context.DeadlineExceeded)
					}
					return len(d.text), nil
				}
				first := func(i int, d *document) {
					if fill(i, d); i == 0 {
						d.slow = 24 * time.Hour
					}
				}
				exact := WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}})
				seen, most := 0, 0
				for r, err := range Stream(t.Context(), l.documents(passing, first), fn, exact, WithAttemptTimeout(0), WithReadAhead(ahead), WithConcurrency(workers)) {
					if err != nil || r.Err != nil {
						t.Fatal(err, r.Err)
					}
					if seen++; seen%500 == 0 {
						r.Item = nil
						synctest.Wait()
						most = max(most, l.held())
					}
				}
				if seen != passing || most > ahead+workers+inHand {
					t.Errorf("%d of %d inputs were held at once, want at most %d", most, passing, ahead+workers+inHand)
				}
			})
		})
	}
}

// Jobs share an allocation, but never a large one: where inputs are large values, each
// has its own.
func TestJobsShareLittle(t *testing.T) {
	if n := len(newJobs[int, int]()); n < 2 || n > jobBytes/300 {
		t.Errorf("%d small jobs in one allocation", n)
	}
	if n := len(newJobs[[jobBytes]byte, int]()); n != 1 {
		t.Errorf("%d large jobs in one allocation", n)
	}
}
