package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// One of three hubs is not ready as long as it is alone. The three are, and all lines to join by have the same token, which
// the hubs get as the documentation says. Later two of them are ready without the third.
func TestOneOfThreeHubsIsNotReady(t *testing.T) {
	t.Parallel()
	f := unstarted(t, plan{provider: sim.Config{}})
	f.command = command(t)
	shared := filepath.Join(f.dir, "shared")
	if text, code := f.run("hub", "init", shared); code != 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	routes := []string{freePort(t), freePort(t), freePort(t)}
	for i, route := range routes {
		f.hubs = append(f.hubs, f.newHub(i+1, "--route", route, "--peers", strings.Join(routes, ","), "--tls-dir", shared))
	}
	first := f.hubs[0]
	first.start()
	first.isNotReady()
	f.hubs[1].start()
	f.hubs[2].start()
	before, _, _ := lineParts(first.serves())
	for _, h := range f.hubs[1:] {
		if other, _, _ := lineParts(h.serves()); other != before {
			t.Errorf("%s has another token than the first", h.name)
		}
	}
	for _, h := range f.hubs {
		h.kill()
		if err := os.Remove(h.ready); err != nil {
			t.Fatal(err)
		}
	}
	first.start()
	first.isNotReady()
	f.hubs[1].start()
	first.serves()
	f.hubs[1].serves()
}

// isNotReady watches a hub for longer than one that serves takes to say so.
func (h *hub) isNotReady() {
	h.t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(h.ready); err == nil {
			h.t.Fatalf("it is ready alone: %s", text)
		}
	}
	if !h.running() {
		h.t.Fatalf("it has ended: %s", h.lastWords())
	}
}
