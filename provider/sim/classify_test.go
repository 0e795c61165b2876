package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

// What a face says is understood by the client's reading of answers, which was written from
// what providers said and knows nothing of the faces.
func TestRefusalsAreUnderstood(t *testing.T) {
	for _, sp := range speakers {
		for _, c := range []struct {
			cfg  sim.Config
			want provider.Kind
		}{
			{sim.Config{RPM: 1, RetryAfter: sim.Always}, provider.Throttled},
			{sim.Config{RPM: 1, Terse: true}, provider.Throttled},
			{sim.Config{TPM: 1e4, Burst: 1}, provider.Throttled},
			{sim.Config{Keys: []string{"another"}}, provider.Unauthorized},
			{sim.Config{Errors: sim.Rates{BadRequest400: 1}}, provider.Invalid},
			{sim.Config{Errors: sim.Rates{Overloaded503: 1}}, provider.Overloaded},
			{sim.Config{Errors: sim.Rates{Server500: 1}}, provider.Server},
			{sim.Config{QuotaAfter: 1}, provider.QuotaExhausted},
		} {
			s := sp.server(c.cfg)
			g := sp.says(t, s, "one")
			for n := 0; g.Status == 200 && n < 3; n++ {
				g = sp.says(t, s, "one")
			}
			e := provider.Classify(g.Status, g.Header, []byte(g.Body.Raw))
			if sp.name == "gemini on vertex" && c.want == provider.QuotaExhausted {
				c.want = provider.Unauthorized // a 403: that it is about money is for Gemini's own dialect to know
			}
			if told := c.cfg.RetryAfter == sim.Always && sp.name != "gemini on vertex"; told && (e == nil || e.RetryAfter != time.Minute) {
				t.Errorf("%s: no wait of a minute: %v", sp.name, e)
			}
			if e == nil || e.Kind != c.want {
				t.Errorf("%s: %d %v %s: %v, want %v", sp.name, g.Status, g.Header, g.Body.Raw, e, c.want)
			}
		}
	}
}

// Whatever a face sends in place of an answer is worth another try.
func TestGarbledAnswersAreTriedAgain(t *testing.T) {
	for _, sp := range speakers {
		s := sp.server(sim.Config{Errors: sim.Rates{Malformed200: 1}})
		for i := range 12 {
			g := sp.says(t, s, fmt.Sprint("garbled ", i))
			e := provider.Classify(g.Status, g.Header, []byte(g.Body.Raw))
			if e == nil || e.Kind != provider.Server && e.Kind != provider.EmptyAnswer && e.Kind != provider.TransportFault {
				t.Errorf("%s: %v %q: %v", sp.name, g.Header, g.Body.Raw, e)
			}
		}
	}
}
