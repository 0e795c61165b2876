package serve

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/catalog"
)

// The end of a server waits for its past no longer than 5 s, on a disk that hangs, and says so. What the disk answers after
// that is not said, as nobody listens any more.
func TestPastOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(batch.NewShared())(t)
		client := must.Get(catalog.Client("openai", catalog.Place{}, "sk-test"))(t)
		h := must.Get(handler.New(handler.Config{Shared: shared, Open: true, Upstream: func(string) handler.Upstream { return client }}))(t)
		var said strings.Builder
		s := &server{World: &world.World{Clock: clockwork.NewRealClock()}, own: &flags{state: "s.json"}, handler: h}
		s.console = progress.Open(progress.Plain(&said), time.Now)
		hangs := make(chan struct{})
		p := &past{server: s, counts: report.NewServing("openai", true, time.Now()), stop: make(chan struct{}), keepDone: make(chan struct{})}
		p.save = func(*report.Served, string) error { <-hangs; return errors.New("late") }
		go p.keep()
		began := time.Now()
		p.close()
		if took := time.Since(began); took != fileWait {
			t.Errorf("it waited for %v, want %v", took, fileWait)
		}
		s.console.Close(nil)
		close(hangs)
		<-p.keepDone
		if text := said.String(); strings.Count(text, "s.report.json: it is not up to date, as its disk has not answered for 5s") != 1 || strings.Contains(text, "late") {
			t.Error(text)
		}
		must.Do(t, h.Close(t.Context()))
		shared.Close()
	})
}
