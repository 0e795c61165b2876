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

// checkProvider checks the key of each lane and the way to each server. Only if these are good does it make a call on
// each lane.
func (d *doctor) checkProvider(ctx context.Context) {
	keys := true
	for _, lane := range d.lanes() {
		keys = d.checkKey(lane) && keys
	}
	reached := d.checkServers(ctx)
	switch {
	case d.offline && (!keys || !reached || !d.connectsLocally()):
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
		d.tryCall(ctx, all, d.flags, "")
	}
	for _, lane := range all.Lanes {
		if lane.Spec.Base == "" {
			d.tryCall(ctx, lane, lane.Spec.Flags, lane.Spec.Name)
		}
	}
}

const offline = "--offline: nobody was called"

// connectsLocally reports whether keys and headers are read without asking anybody. Credentials of clouds may come
// from a server of theirs, and --share asks other programs.
func (d *doctor) connectsLocally() bool {
	return !d.flags.Share && !slices.ContainsFunc(d.lanes(), func(l lane) bool {
		return l.flags.Vendor.Auth == catalog.AWS || l.flags.Vendor.Auth == catalog.Google
	})
}

// A lane is one that the file of --config names, or the only one.
type lane struct {
	name  string // "": the only one
	flags *settings.Flags
}

// lanes lists the lanes to check. It leaves out the flex tier of a lane, which has the key and the server of that
// lane.
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

// checkKey notes where the key of a lane is, and reports whether it is there.
func (d *doctor) checkKey(l lane) bool {
	finding := Finding{Check: Key, Lane: l.name, State: Well}
	if d.flags.Through != "" {
		finding.Text = "that of headrace serve, to which a run goes"
		d.found.add(finding)
		return true
	}
	place := account.PlaceOfKey(d.World, l.flags)
	switch {
	case place.Name == "":
		finding.Text = "none is needed"
	case place.Missing:
		text := place.Name + " is not set"
		if place.IsFile {
			text = place.Name + ": there is no such file"
		}
		d.found.fault(exit.Usage, Finding{Check: Key, Lane: l.name, Text: text, Do: place.Remedy(l.flags)})
		return false
	case place.Length > 0:
		finding.Text = fmt.Sprintf("%s has it: %s", place.Name, words.Count(place.Length, "character"))
	default:
		finding.Text = place.Name // whether it proves anything shows at the call
	}
	if place.Odd != "" {
		finding.State, finding.Text, finding.Do = Warning, finding.Text+", "+place.Odd, "remove what is not a part of the key"
	}
	d.found.add(finding)
	return true
}

// checkServers checks the way to each server once, and reports whether all answer. With --offline it checks only what
// is here: proxies and certificates.
func (d *doctor) checkServers(ctx context.Context) bool {
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
		all = d.checkServer(ctx, l, way, u) && all
	}
	return all
}

// longestLook is the time that a server may take to answer: as long as a user watches.
const longestLook = 20 * time.Second

// checkServer sends a server a request without a key. It notes the proxy, the certificate and the time to the answer,
// and reports whether one came.
func (d *doctor) checkServer(ctx context.Context, l lane, way account.Way, u *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	transport := provider.NewHTTPTransport(1)
	transport.TLSClientConfig = way.TLS
	defer transport.CloseIdleConnections()
	var tlsState tls.ConnectionState
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(s tls.ConnectionState, _ error) { tlsState = s }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodHead, way.Address, nil)
	if err != nil {
		d.found.refusal(Network, err)
		return false
	}
	viaProxy, proxied := "", false
	if proxy, err := transport.Proxy(req); err == nil && proxy != nil {
		viaProxy, proxied = ", through the proxy "+proxy.Host, true
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
			text += viaProxy
		}
		d.found.fault(exit.Stopped, Finding{Check: Network, Lane: l.name, Text: u.Host + ": " + text, Do: do})
		return false
	}
	_ = resp.Body.Close() // HEAD has none
	finding := Finding{Check: Network, Lane: l.name, State: Well, Text: fmt.Sprintf("%s answers in %s%s", u.Host, words.Wait(took), viaProxy)}
	if len(tlsState.PeerCertificates) > 0 {
		end := tlsState.PeerCertificates[0].NotAfter
		finding.Text += fmt.Sprintf("; %s, its certificate is good until %s", tls.VersionName(tlsState.Version), end.Format(time.DateOnly))
		if end.Sub(d.Clock.Now()) < soonOver {
			finding.State, finding.Do = Warning, "tell the owner of the server that its certificate ends soon"
		}
	}
	d.found.add(finding)
	d.checkClock(l, resp.Header.Get("Date"), began.Add(took/2))
	return true
}

// soonOver is the time before its end at which a certificate becomes a warning: the longest runs take days.
const soonOver = 7 * 24 * time.Hour

// Bounds of the difference between two clocks. Signatures of AWS and tokens of Google are refused above 5 minutes.
// Dates in headers are whole seconds, and answers come late.
const (
	faultClock = 5 * time.Minute
	warnClock  = 30 * time.Second
)

// checkClock compares the clock here with the date of a server's answer.
func (d *doctor) checkClock(l lane, date string, here time.Time) {
	there, err := http.ParseTime(date)
	if err != nil {
		d.found.add(Finding{Check: Clock, Lane: l.name, State: Skipped, Text: "the server tells no date"})
		return
	}
	off, side := here.Sub(there), "ahead of"
	if off < 0 {
		off, side = -off, "behind"
	}
	finding := Finding{Check: Clock, Lane: l.name, State: Well, Text: "as the server's"}
	if off > warnClock {
		finding.State, finding.Text = Warning, fmt.Sprintf("the clock here is %s %s the server's", words.Wait(off), side)
		finding.Do = "set the clock, as with timedatectl set-ntp true: waits until a time of day, signatures and certificates need it"
	}
	if off > faultClock {
		d.found.fault(exit.Usage, finding)
		return
	}
	d.found.add(finding)
}

// tryCall makes the shortest call that a lane takes, and notes what came of it.
func (d *doctor) tryCall(ctx context.Context, a *account.Account, flags *settings.Flags, name string) {
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	models := []string{d.flags.DefaultModel()}
	if a.Spec != nil {
		models = lanes.ModelsOf(a.Spec, d.flags.DefaultModel())
	}
	if models = withoutWord(models, ""); len(models) == 0 {
		models = withoutWord([]string{d.model}, "")
	}
	finding := Finding{Check: Call, Lane: name, State: Well}
	if len(models) == 0 && flags.Provider != settings.ProviderSim {
		finding.State, finding.Text, finding.Do = Skipped, "no model is known", "add --model NAME, or name the input"
		d.found.add(finding)
		return
	}
	trial := lanes.Try(ctx, d.World, a, flags, models)
	if trial.Answered {
		finding.Text = fmt.Sprintf("answered in %s; limits told: %s", words.Wait(trial.Took), trial.Limits)
		d.found.add(finding)
		return
	}
	if trial.Err == nil { // nothing was sent
		finding.State, finding.Text = Skipped, trial.Why
		d.found.add(finding)
		return
	}
	finding.Text = verdict.ReasonOf(trial.Err)
	facts := &verdict.Facts{World: d.World, Flags: flags, Account: a}
	if e := verdict.FaultOf(trial.Err); e != nil && e.Kind.Cools() {
		finding.State, finding.Do = Warning, "nothing: a run waits for as long as the provider asks, and goes on"
		d.found.add(finding)
		return
	}
	finding.Do = verdict.Advice(facts, trial.Err)
	d.found.fault(exit.Stopped, finding)
}

// longestCall is the time for which one token may take.
const longestCall = time.Minute

// withoutWord returns the words that differ from the given one.
func withoutWord(words []string, word string) (rest []string) {
	for _, one := range words {
		if one != word {
			rest = append(rest, one)
		}
	}
	return rest
}
