package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/lanes"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// provider looks at the key of each lane, at the way to each server, and makes the calls.
func (d *doctor) provider(ctx context.Context) {
	keys := true
	for _, lane := range d.lanes() {
		keys = d.key(lane) && keys
	}
	reached := d.servers(ctx)
	switch {
	case d.offline && (!keys || !reached || !d.connectsHere()):
		d.found.add(Finding{Check: Call, State: Skipped, Text: offline})
		return
	case !keys || !reached:
		d.found.add(Finding{Check: Call, State: Skipped, Text: "not made, as it would fail"})
		return
	}
	all, err := account.Connect(ctx, d.World, d.flags)
	if err != nil {
		d.found.refusal(Key, err)
		return
	}
	defer all.Fleet.CloseIdle()
	d.found.secrets = all.Secrets()
	for _, n := range all.Notice {
		switch n.Code {
		case event.Key:
			d.found.add(Finding{Check: Key, State: Warning, Text: n.Text})
		case event.Unused:
			d.found.add(Finding{Check: Settings, State: Warning, Text: n.Text, Do: "remove it"})
		}
	}
	if d.offline {
		d.found.add(Finding{Check: Call, State: Skipped, Text: offline})
		return
	}
	if all.Lanes == nil {
		d.call(ctx, all, d.flags, "")
	}
	for _, lane := range all.Lanes {
		if lane.Spec.Base == "" {
			d.call(ctx, lane, lane.Spec.Flags, lane.Spec.Name)
		}
	}
}

const offline = "--offline: nobody was called"

// connectsHere reports whether keys and headers are read without asking anybody. Credentials of clouds may come from a
// server of theirs, and --share asks other programs.
func (d *doctor) connectsHere() bool {
	return !d.flags.Share && !slices.ContainsFunc(d.lanes(), func(l lane) bool {
		return l.flags.Vendor.Auth == catalog.AWS || l.flags.Vendor.Auth == catalog.Google
	})
}

// A lane is one that the file of --config names, or the only one.
type lane struct {
	name  string // "": the only one
	flags *settings.Flags
}

// lanes lists the lanes. The flex tier of a lane has the key and the server of that lane.
func (d *doctor) lanes() (all []lane) {
	if d.flags.Fleet == nil {
		return []lane{{"", d.flags}}
	}
	for i := range d.flags.Fleet.Lanes {
		if l := &d.flags.Fleet.Lanes[i]; l.Base == "" {
			all = append(all, lane{l.Name, l.Flags})
		}
	}
	return all
}

// key says where the key of a lane is, and reports whether it is there.
func (d *doctor) key(l lane) bool {
	one := Finding{Check: Key, Lane: l.name, State: Well}
	if d.flags.Through != "" {
		one.Text = "that of headrace serve, to which a run goes"
		d.found.add(one)
		return true
	}
	place := account.PlaceOfKey(d.World, l.flags)
	switch {
	case place.Name == "":
		one.Text = "none is needed"
	case place.Missing:
		text := place.Name + " is not set"
		if place.IsFile {
			text = place.Name + ": there is no such file"
		}
		d.found.fault(exit.Usage, Finding{Check: Key, Lane: l.name, Text: text, Do: place.Remedy(l.flags)})
		return false
	case place.Length > 0:
		one.Text = fmt.Sprintf("%s has it: %s", place.Name, words.Count(place.Length, "character"))
	default:
		one.Text = place.Name // whether it proves anything shows at the call
	}
	if place.Odd != "" {
		one.State, one.Text, one.Do = Warning, one.Text+", "+place.Odd, "remove what is not a part of the key"
	}
	d.found.add(one)
	return true
}

// servers looks at the way to each server once, and reports whether all answer. With --offline it looks only at what is
// here: proxies and certificates.
func (d *doctor) servers(ctx context.Context) bool {
	seen, all := map[string]bool{}, true
	for _, l := range d.lanes() {
		way, err := account.WayOf(ctx, d.World, l.flags)
		if err != nil {
			d.found.refusal(Network, err)
			all = false
			continue
		}
		u, err := url.Parse(way.Address)
		if err != nil || u.Host == "" || seen[u.Scheme+"://"+u.Host] || d.offline {
			continue // the simulated provider, a unix socket, or a server that another lane has
		}
		seen[u.Scheme+"://"+u.Host] = true
		all = d.reach(ctx, l, way, u) && all
	}
	return all
}

// longestLook is the time that a server may take to answer: as long as a user watches.
const longestLook = 20 * time.Second

// reach asks a server for anything, without a key, and says how its answer came.
func (d *doctor) reach(ctx context.Context, l lane, way account.Way, u *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	transport := provider.NewHTTPTransport(1)
	transport.TLSClientConfig = way.TLS
	defer transport.CloseIdleConnections()
	var shown tls.ConnectionState
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(s tls.ConnectionState, _ error) { shown = s }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodHead, way.Address, nil)
	if err != nil {
		d.found.refusal(Network, err)
		return false
	}
	by, proxied := "", false
	if proxy, err := transport.Proxy(req); err == nil && proxy != nil {
		by, proxied = ", through the proxy "+proxy.Host, true
	}
	began := d.Clock.Now()
	resp, err := transport.RoundTrip(req)
	took := d.Clock.Now().Sub(began)
	if err != nil {
		do := verdict.Advice(&verdict.Facts{World: d.World, Flags: l.flags}, err)
		if proxied && !strings.Contains(do, "HTTPS_PROXY") {
			do += ", and the proxy in HTTPS_PROXY or HTTP_PROXY"
		}
		text := verdict.ReasonOf(err)
		if errors.Is(err, context.DeadlineExceeded) {
			text = "no answer within " + words.Wait(d.patience)
		}
		if !strings.Contains(text, "the proxy at ") {
			text += by
		}
		d.found.fault(exit.Stopped, Finding{Check: Network, Lane: l.name, Text: u.Host + ": " + text, Do: do})
		return false
	}
	_ = resp.Body.Close() // HEAD has none
	one := Finding{Check: Network, Lane: l.name, State: Well, Text: fmt.Sprintf("%s answers in %s%s", u.Host, words.Wait(took), by)}
	if len(shown.PeerCertificates) > 0 {
		end := shown.PeerCertificates[0].NotAfter
		one.Text += fmt.Sprintf("; %s, its certificate is good until %s", tls.VersionName(shown.Version), end.Format(time.DateOnly))
		if end.Sub(d.Clock.Now()) < soonOver {
			one.State, one.Do = Warning, "tell the owner of the server that its certificate ends soon"
		}
	}
	d.found.add(one)
	d.clock(l, resp.Header.Get("Date"), began.Add(took/2))
	return true
}

// soonOver is the time before its end at which a certificate becomes a warning: the longest runs take days.
const soonOver = 7 * 24 * time.Hour

// Bounds of the difference between two clocks. Signatures of AWS and tokens of Google are refused above 5 minutes.
// Dates in headers are whole seconds, and answers come late.
const (
	wrongClock = 5 * time.Minute
	oddClock   = 30 * time.Second
)

// clock compares the clock here with the date of an answer.
func (d *doctor) clock(l lane, date string, here time.Time) {
	there, err := http.ParseTime(date)
	if err != nil {
		d.found.add(Finding{Check: Clock, Lane: l.name, State: Skipped, Text: "the server tells no date"})
		return
	}
	off, side := here.Sub(there), "ahead of"
	if off < 0 {
		off, side = -off, "behind"
	}
	one := Finding{Check: Clock, Lane: l.name, State: Well, Text: "as the server's"}
	if off > oddClock {
		one.State, one.Text = Warning, fmt.Sprintf("the clock here is %s %s the server's", words.Wait(off), side)
		one.Do = "set the clock, as with timedatectl set-ntp true: waits until a time of day, signatures and certificates need it"
	}
	if off > wrongClock {
		d.found.fault(exit.Usage, one)
		return
	}
	d.found.add(one)
}

// call makes the shortest call of a lane.
func (d *doctor) call(ctx context.Context, a *account.Account, flags *settings.Flags, name string) {
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	models := []string{d.flags.DefaultModel()}
	if a.Spec != nil {
		models = lanes.ModelsOf(a.Spec, d.flags.DefaultModel())
	}
	if models = without(models, ""); len(models) == 0 {
		models = without([]string{d.model}, "")
	}
	one := Finding{Check: Call, Lane: name, State: Well}
	if len(models) == 0 && flags.Provider != settings.ProviderSim {
		one.State, one.Text, one.Do = Skipped, "no model is known", "add --model NAME, or name the input"
		d.found.add(one)
		return
	}
	t := lanes.Try(ctx, d.World, a, flags, models)
	if t.Answered {
		one.Text = fmt.Sprintf("answered in %s; limits told: %s", words.Wait(t.Took), t.Limits)
		d.found.add(one)
		return
	}
	if t.Err == nil { // nothing was sent
		one.State, one.Text = Skipped, t.Why
		d.found.add(one)
		return
	}
	one.Text = verdict.ReasonOf(t.Err)
	facts := &verdict.Facts{World: d.World, Flags: flags, Account: a}
	if e := verdict.FaultOf(t.Err); e != nil && e.Kind.Cools() {
		one.State, one.Do = Warning, "nothing: a run waits for as long as the provider asks, and goes on"
		d.found.add(one)
		return
	}
	one.Do = verdict.Advice(facts, t.Err)
	d.found.fault(exit.Stopped, one)
}

// longestCall is the time for which one token may take.
const longestCall = time.Minute

func without(words []string, word string) (rest []string) {
	for _, one := range words {
		if one != word {
			rest = append(rest, one)
		}
	}
	return rest
}
