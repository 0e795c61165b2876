package live

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
)

// plotted is a body with two plots of three moments.
const plotted = `<p id="moments" data-x="56|200|400" data-t="10:00:00|10:00:10|10:00:20" hidden></p>
<p class="keys"><span>ended <b class="v" data-v="11||33"></b></span></p>
<div class="plot" tabindex="0"><svg viewBox="0 0 720 124"></svg></div>
<p class="keys"><span>cost <b class="v" data-v="$1|$2|$3"></b></span></p>
<div class="plot" tabindex="0"><svg viewBox="0 0 720 124"></svg></div>
<img src="late.svg" alt=""><script src="test.js" defer></script>
`

// hand does what a person does, and notes what is then to be seen. Its notes stand outside #live, where the page's states
// do not replace them.
const hand = `const seen = document.body.appendChild(Object.assign(document.createElement('pre'), {id: 'seen'})), plot = document.querySelector('.plot'), box = plot.firstChild.getBoundingClientRect();
const note = what => seen.append(what + ': ' + [...document.querySelectorAll('.v')].map(v => v.textContent) + ' ' + [...document.querySelectorAll('.at')].map(at => at.firstChild.getAttribute('d') + ' ' + at.lastChild.textContent) + '; ');
const at = x => plot.firstChild.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: box.left + x / 720 * box.width}));
const press = key => plot.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, key}));
note('none');
at(300); note('at 300');
at(5); note('at 5');
press('ArrowRight'); note('right');
seen.append(document.getElementById('told').textContent + '; ');
press('End'); note('end');
press('ArrowRight'); note('right of it');
press('Escape'); note('escape');
at(300); document.body.dispatchEvent(new PointerEvent('pointermove', {bubbles: true})); note('away');
`

// The script draws a line at the pointer, or where the keys move it, on all plots, and shows the figures of that moment.
// A browser must be installed.
func TestPointer(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	p := New(Config{Clock: clockwork.NewRealClock(), Render: func() (title, body string) { return "plots", plotted }})
	p.End() // so that the stream ends, and with it the browser's wait
	mux := http.NewServeMux()
	p.Register(mux)
	mux.HandleFunc("GET /test.js", serveFixed("text/javascript", []byte(hand)))
	mux.HandleFunc("GET /late.svg", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(300 * time.Millisecond) // the browser prints the page once it has this: a state has come before
		serveFixed("image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))(w, nil)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := must.Get(exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", s.URL).Output())(t)
	_, seen, _ := strings.Cut(string(out), `<pre id="seen">`)
	seen, _, _ = strings.Cut(seen, "</pre>")
	const want = "none: 33,$3 ; at 300: 11,$2 M300 8V104 10:00:10,M300 8V104 10:00:10; at 5: 11,$1 M56 8V104 10:00:00,M56 8V104 10:00:00; " +
		"right: 11,$2 M300 8V104 10:00:10,M300 8V104 10:00:10; 10:00:10, ended 11; end: 33,$3 M555 8V104 10:00:20,M555 8V104 10:00:20; " +
		"right of it: 33,$3 M555 8V104 10:00:20,M555 8V104 10:00:20; escape: 33,$3 ; away: 33,$3 ; "
	if seen != want {
		t.Errorf("got\n%s\nwant\n%s\nof the page\n%s", seen, want, out)
	}
}
