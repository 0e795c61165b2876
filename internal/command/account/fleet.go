package account

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/fleet"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/sim"
)

// connectFleet makes a client for each lane of the file.
func connectFleet(ctx context.Context, w *world.World, flags *settings.Flags) (*Account, error) {
	specs := flags.Fleet.Lanes
	all := &Account{World: w, flags: flags, ctx: ctx, Name: nameOf(flags.Fleet), shares: &shares{}}
	for i := range specs {
		spec := &specs[i]
		of := spec.Flags
		of.AnswerText(flags.WritesText())
		of.Concurrency, of.MaxBodies = spec.Window(), max(1, flags.MaxBodies/len(specs))
		lane, err := connect(&Account{World: w, flags: of, ctx: ctx, Name: of.Name(), Shared: of.Vendor.ByAccount, Spec: spec, shares: all.shares})
		if err == nil && lane.Books == nil && len(lane.Secrets()) > 0 && spec.IsOpen() {
			err = exit.Refuse("its key would be sent unencrypted to %s, as base-url says http: write https, or add insecure: true", settings.HostOf(of.BaseURL))
		}
		if err != nil {
			return nil, laneFault(flags.Fleet.File, spec, err)
		}
		all.take(flags.Fleet.File, lane)
	}
	all.nameAccounts()
	all.shares.of(all.Lanes)
	for _, name := range flags.Fleet.Unused() {
		all.Note(event.Unused, fmt.Sprintf("%s:%d: lane %s is in no pool: it gets no line", flags.Fleet.File, flags.Fleet.Lane(name).Line, name))
	}
	var err error
	all.Fleet, err = fleet.New(all.clients()...)
	return all, err
}

// nameOf names the provider of a run over several lanes.
func nameOf(f *settings.Fleet) string {
	const listed = 3 // as many names as a row of the panel shows
	if names := f.Names(); len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d lanes", len(f.Lanes))
}

// laneFault says which lane cannot be connected.
func laneFault(file string, spec *settings.LaneSpec, err error) error {
	if end, is := errors.AsType[*exit.Ending](err); is {
		text, _, _ := strings.Cut(end.Text, "\nthen run:")
		end.Text = spec.InFile(file, text)
		if end.Resume != "" {
			end.Text += "\nthen run:"
		}
	}
	return err
}

// take adds a lane, and what the user should know about it.
func (b *Account) take(file string, lane *Account) {
	b.Lanes = append(b.Lanes, lane)
	for _, n := range lane.Notice {
		if lane.Spec.Base != "" { // the lane of the file says the same
			break
		}
		if n.Code == event.Simulated {
			if !slices.Contains(b.Notice, n) {
				b.Notice = append(b.Notice, n)
			}
			continue
		}
		b.Note(n.Code, lane.Spec.InFile(file, n.Text))
	}
	if lane.Books != nil {
		b.Books = b.booksOfLanes
	}
}

// booksOfLanes sums up the books of simulated lanes.
func (b *Account) booksOfLanes() (all sim.Books) {
	for _, lane := range b.Lanes {
		one := lane.Books()
		all.Received += one.Received
		all.Accepted += one.Accepted
		all.Refused429 += one.Refused429
	}
	return all
}

// nameAccounts gives each lane its account. Lanes that send one key are of one account, unless
// the file says otherwise.
func (b *Account) nameAccounts() {
	byKey := map[string]string{}
	for _, lane := range b.Lanes {
		key := lane.key()
		if lane.Spec.Fate = lane.Spec.Account; lane.Spec.Fate == "" && key != "" {
			lane.Spec.Fate = byKey[key]
		}
		lane.Spec.Fate = cmp.Or(lane.Spec.Fate, lane.Spec.Name)
		if key != "" && byKey[key] == "" {
			byKey[key] = lane.Spec.Fate
		}
	}
}

// clients returns a client for each lane, and one for the lanes of each quota.
func (b *Account) clients() (all []fleet.Lane) {
	quotas := map[string]*turns{}
	for _, lane := range b.Lanes {
		one := &laneClient{spec: lane.Spec, client: lane.Fleet.Of(""), own: lane.flags.MaxTokensGiven, most: lane.flags.MaxTokens}
		quota := lane.Spec.Quota
		switch {
		case quota == "":
			all = append(all, fleet.Lane{Name: lane.Spec.Name, Client: one})
		case quotas[quota] == nil:
			quotas[quota] = &turns{lanes: []*laneClient{one}}
			all = append(all, fleet.Lane{Name: quota, Client: quotas[quota]})
		default:
			quotas[quota].lanes = append(quotas[quota].lanes, one)
		}
	}
	return all
}

// A laneClient calls the provider of a lane, by the lane's own word for the model.
type laneClient struct {
	spec   *settings.LaneSpec
	client fleet.Client
	own    bool // the lane has a bound of its own on answers without one
	most   int  // in tokens
}

// Do makes one call. The body keeps all its bytes but those of the model's name.
func (c *laneClient) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	word, ok := c.spec.Serves(r.Model)
	if !ok {
		return provider.Reply{}, c.notServed(r.Model)
	}
	asked := r.Model
	if word != asked {
		r.Model, r.Body = word, withModel(r.Body, word)
	}
	if c.own {
		r.MaxTokens = c.most
	}
	reply, err := c.client.Do(ctx, r)
	if word != asked && reply.Served == "" {
		reply.Served = word
	}
	return reply, err
}

// Pass makes one call as it came, with the lane's own word for the model.
func (c *laneClient) Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error) {
	word, ok := c.spec.Serves(r.Model)
	if !ok {
		return nil, c.notServed(r.Model)
	}
	if word != r.Model {
		r.Model, r.Body = word, withModel(r.Body, word)
	}
	return c.client.(Passer).Pass(ctx, r, streams, header, query)
}

// List asks for the provider's list of models.
func (c *laneClient) List(ctx context.Context, header http.Header) (*http.Response, error) {
	return c.client.(Passer).List(ctx, header)
}

func (c *laneClient) notServed(model string) error {
	return &provider.Error{Kind: provider.Misconfigured, Provider: c.spec.Name, Err: fmt.Errorf("the lane does not serve model %.64q", model)}
}

// CloseIdle closes the connections that no call uses.
func (c *laneClient) CloseIdle() { c.client.CloseIdle() }

// withModel returns a body that names another model. Where a body names none, the address does.
func withModel(body []byte, model string) []byte {
	for _, m := range rawjson.Members(rawjson.Trim(body), nil) {
		if string(m.Name) != "model" {
			continue
		}
		object := rawjson.Trim(body)
		at := m.Start + bytes.LastIndex(m.Raw, m.Value)
		out := append(make([]byte, 0, len(object)+len(model)+2), object[:at]...)
		out = rawjson.AppendString(out, model)
		return append(out, object[at+len(m.Value):]...)
	}
	return body
}

// turns are the lanes of one quota: calls take turns among those that serve their model.
type turns struct {
	lanes []*laneClient
	next  atomic.Uint64
}

// Do makes one call, by the next lane that serves its model.
func (t *turns) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	return t.lane(r.Model).Do(ctx, r)
}

// Pass makes one call as it came, by the next lane that serves its model.
func (t *turns) Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error) {
	return t.lane(r.Model).Pass(ctx, r, streams, header, query)
}

// List asks the provider of the first lane for its list of models.
func (t *turns) List(ctx context.Context, header http.Header) (*http.Response, error) {
	return t.lanes[0].List(ctx, header)
}

// lane returns the next lane that serves a model. If none does, it returns one that says so.
func (t *turns) lane(model string) *laneClient {
	first := int(t.next.Add(1) % uint64(len(t.lanes)))
	for i := range t.lanes {
		lane := t.lanes[(first+i)%len(t.lanes)]
		if _, ok := lane.spec.Serves(model); ok {
			return lane
		}
	}
	return t.lanes[first]
}

// CloseIdle closes the connections that no call uses.
func (t *turns) CloseIdle() {
	for _, lane := range t.lanes {
		lane.CloseIdle()
	}
}

// LaneNamed returns the account of a lane in results: that of the lane itself, of one of its
// models, or the first of a quota.
func (b *Account) LaneNamed(machine string) *Account {
	name, _, _ := strings.Cut(machine, "/")
	for _, lane := range b.Lanes {
		if lane.Spec.Name == name || lane.Spec.Quota == machine {
			return lane
		}
	}
	return nil
}

// Bill returns the cost of a model's tokens on a machine's lane at a time, and the source of the price; false: nobody
// knows it. The lane's own word for the model is the one that has a price. Of a lane that the account does not know, the
// table says it.
func (b *Account) Bill(table *price.Table, machine, model string, u provider.Usage, at time.Time) (cost limiter.Money, source string, known bool) {
	if machine == "" {
		return table.Cost(model, u, at)
	}
	of := b.LaneNamed(machine)
	if of == nil {
		return table.Cost(model, u, at)
	}
	word, served := of.Spec.Serves(model)
	if !served {
		word = model
	}
	if cost, source, known = of.Spec.Flags.Known.Cost(word, u, at); !known && word != model {
		return of.Spec.Flags.Known.Cost(model, u, at) // a deployment has a name of its own
	}
	return cost, source, known
}

// Called returns what a call on a machine's lane goes to: the vendor by its name in the catalog, its host, and its
// own word for the line's model.
func (b *Account) Called(machine, model string) (vendor, host, word string) {
	if lane := b.laneFor(machine, model); lane != nil {
		vendor, host, _ = lane.Called(machine, model)
		word, _ = lane.Spec.Serves(model)
		return vendor, host, cmp.Or(word, model)
	}
	v := &b.flags.Vendor
	b.askedHost.Do(func() { b.host = settings.HostOf(cmp.Or(b.flags.BaseURL, v.Base)) })
	return cmp.Or(v.Name, b.Name), b.host, model
}

// laneFor returns the account of a lane in results. Of the lanes of one quota it is the first that serves the model.
func (b *Account) laneFor(machine, model string) *Account {
	for _, lane := range b.Lanes {
		if lane.Spec.Quota == machine {
			if _, ok := lane.Spec.Serves(model); ok {
				return lane
			}
		}
	}
	return b.LaneNamed(machine)
}

// lanesAdvice says what a user may do about a lane whose key was refused.
func (b *Account) lanesAdvice() string {
	var places []string
	for _, lane := range b.Lanes {
		if lane.Proven != "" {
			places = append(places, lane.Spec.Name+": "+lane.Proven)
		}
	}
	return fmt.Sprintf("check the keys (%s), as with headrace lanes --try --config %s", strings.Join(places, ", "), settings.ShellQuote(b.flags.Config))
}

// meetByLanes meets the neighbours of each key.
func (b *Account) meetByLanes(notice func(event.Code, string)) (leave func()) {
	met := map[string]bool{}
	var all []func()
	for _, lane := range b.Lanes {
		key := cmp.Or(lane.key(), lane.Identity())
		if met[key] || lane.Books != nil {
			continue
		}
		met[key] = true
		lane.flags.Output, lane.ServesAt = b.flags.Output, b.ServesAt
		all = append(all, lane.MeetNeighbours(notice))
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// shares knows which lanes draw on the limits of one organisation. The workers tell it what
// answers say.
type shares struct {
	mu     sync.Mutex
	lanes  []*Account
	org    map[*Account]string // what its first answer said
	said   map[[2]*Account]bool
	notice func(event.Code, string) // nil: nobody listens yet
	unsaid []string                 // until somebody listens
}

func (s *shares) of(lanes []*Account) {
	s.lanes, s.org, s.said = lanes, map[*Account]string{}, map[[2]*Account]bool{}
}

// note takes the organisation that an answer names.
func (s *shares) note(lane *Account, org string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if org == "" || s.org[lane] != "" {
		return
	}
	for _, of := range s.lanes { // a server may repeat a key anywhere
		org = provider.RedactText(org, of.Secrets()...)
	}
	s.org[lane] = org
	for _, other := range s.lanes {
		if other == lane || s.org[other] != org || other.Name != lane.Name || s.said[[2]*Account{other, lane}] || !drawOnOne(other, lane) {
			continue
		}
		s.said[[2]*Account{other, lane}] = true
		s.say(sharedLimits(other, lane, printable.Line(org)))
	}
}

// say passes a notice on, or keeps it until somebody listens.
func (s *shares) say(text string) {
	if s.notice == nil {
		s.unsaid = append(s.unsaid, text)
		return
	}
	s.notice(event.SameLimits, text)
}

// Organisation returns the organisation that the lane's answers name; "" if none has.
func (b *Account) Organisation() string {
	b.shares.mu.Lock()
	defer b.shares.mu.Unlock()
	return b.shares.org[b]
}

// SayShared names the lanes that draw on the limits of one organisation, as soon as their answers
// show it. It names lanes that send one key at once.
func (b *Account) SayShared(notice func(event.Code, string)) {
	if b.Lanes == nil {
		return
	}
	b.shares.mu.Lock()
	defer b.shares.mu.Unlock()
	b.shares.notice = notice
	for _, text := range b.shares.unsaid {
		b.shares.say(text)
	}
	for i, lane := range b.Lanes {
		for _, other := range b.Lanes[:i] {
			if key := lane.key(); key == "" || key != other.key() || other.Name != lane.Name || b.shares.said[[2]*Account{other, lane}] || !drawOnOne(other, lane) {
				continue
			}
			b.shares.said[[2]*Account{other, lane}] = true
			b.shares.say(sharedLimits(other, lane, "one key"))
		}
	}
}

// sharedLimits says that two lanes have one limit.
func sharedLimits(a, b *Account, of string) string {
	return fmt.Sprintf("lanes %s and %s draw on %s: their limits are one, and each may be refused because of the other; give both the same quota, as in \"quota: %s\"",
		a.Spec.Name, b.Spec.Name, of, quotaName(a, b))
}

// quotaName proposes a name for the quota of two lanes that is no lane's.
func quotaName(a, b *Account) string {
	if a.Spec.Fate != b.Spec.Fate {
		return "shared-quota"
	}
	return a.Spec.Fate + "-quota"
}

// drawOnOne reports whether two lanes of one organisation may call one model, and neither a quota
// nor an account joins them: the user then knows.
func drawOnOne(a, b *Account) bool {
	if cmp.Or(a.Spec.Base, a.Spec.Name) == cmp.Or(b.Spec.Base, b.Spec.Name) { // two tiers of service
		return false
	}
	if a.Spec.Quota != "" && a.Spec.Quota == b.Spec.Quota || a.Spec.Account != "" && a.Spec.Account == b.Spec.Account {
		return false
	}
	if a.Shared || a.Spec.Models == nil || b.Spec.Models == nil {
		return true
	}
	for _, word := range a.Spec.Models {
		for _, other := range b.Spec.Models {
			if word == other {
				return true
			}
		}
	}
	return false
}
