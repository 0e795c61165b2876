package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// A run has no more items waiting here than it may; its feed waits, and goes on
// when a call has ended.
func TestDoorShutsAtTheReadAheadAndOpensAgain(t *testing.T) {
	const ahead = 10
	inBubble(t, Config{Machine: plain, ReadAhead: ahead}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 2})
		taken := 0
		go func() {
			for _, it := range items(50, "") {
				s.Offer([]*machine.Item{it})
				taken++
			}
			s.EndInput()
		}()
		out := granted(s)
		for want := ahead + 2; len(out) > 0; want++ {
			if taken != min(50, want) {
				t.Fatalf("%d items taken, want %d that wait and 2 in flight beyond the %d done", taken, ahead, want-ahead-2)
			}
			s.Settle(out[0], ok)
			out = append(out[1:], granted(s)...)
		}
		n, _ := s.Final()
		proves(t, n, 50, 50)
	})
}

// An item that comes back counts as one that waits: refusals do not let the feed
// run ahead.
func TestDoorCountsWhatCameBack(t *testing.T) {
	inBubble(t, Config{Machine: plain, ReadAhead: 4}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		taken := 0
		go func() {
			for _, it := range items(100, "") {
				s.Offer([]*machine.Item{it})
				taken++
			}
			s.EndInput()
		}()
		for _, g := range granted(s) {
			s.HandOver(g, within(time.Minute))
		}
		synctest.Wait()
		if taken != 8 {
			t.Errorf("%d items taken, want 4 that wait and 4 that came back", taken)
		}
		for g := range s.Work() {
			s.Settle(g, ok)
		}
		n, _ := s.Final()
		proves(t, n, 100, 104)
	})
}

// A run whose lane cools, and whose feed therefore waits, does not keep out a run
// whose lane is well.
func TestCooledRunDoesNotShutTheDoorOnAnother(t *testing.T) {
	inBubble(t, Config{Machine: plain, ReadAhead: 8}, func(t *testing.T, c *Coordinator) {
		cooled, well := open(t, c, machine.RunConfig{Concurrency: 1}), open(t, c, machine.RunConfig{Concurrency: 1})
		go func() {
			for _, it := range items(100, "ill") {
				cooled.Offer([]*machine.Item{it})
			}
			cooled.EndInput()
		}()
		begun := time.Now()
		cooled.HandOver(<-cooled.Work(), within(time.Hour/10))
		synctest.Wait()
		go func() {
			for _, it := range items(100, "well") {
				well.Offer([]*machine.Item{it})
			}
			well.EndInput()
		}()
		for g := range well.Work() {
			well.Settle(g, ok)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the healthy run took %v", took)
		}
		for g := range cooled.Work() {
			cooled.Settle(g, ok)
		}
	})
}

// A run whose grants nobody takes stops neither the owner nor another run.
func TestUnreadWorkStopsNobody(t *testing.T) {
	inBubble(t, Config{Machine: plain, ReadAhead: 64}, func(t *testing.T, c *Coordinator) {
		deaf, heard := open(t, c, machine.RunConfig{Concurrency: 3}), open(t, c, machine.RunConfig{Concurrency: 3})
		deaf.Offer(items(64, ""))
		synctest.Wait()
		heard.Offer(items(64, ""))
		proves(t, finish(heard), 64, 64)
		if st, err := c.Status(t.Context(), 1); err != nil || st.Lanes[0].InFlight != 3 || st.Held != 61 {
			t.Errorf("%v %+v", err, st)
		}
		proves(t, finish(deaf), 64, 64)
	})
}
