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

// connectFleet makes an account with a client for each lane of the file.
func connectFleet(ctx context.Context, w *world.World, flags *settings.Flags) (*Account, error) {
	specs := flags.Fleet.Lanes
	account := &Account{World: w, flags: flags, ctx: ctx, Name: providerName(flags.Fleet), shares: &organisations{}}
	for i := range specs {
		spec := &specs[i]
		laneFlags := spec.Flags
		laneFlags.AnswerText(flags.WritesText())
		laneFlags.Concurrency, laneFlags.MaxBodies = spec.Window(), max(1, flags.MaxBodies/len(specs))
		lane, err := connect(&Account{World: w, flags: laneFlags, ctx: ctx, Name: laneFlags.Name(), Shared: laneFlags.Vendor.ByAccount, Spec: spec, shares: account.shares})
		if err == nil && lane.Books == nil && len(lane.Secrets()) > 0 && spec.IsOpen() {
			err = exit.Refuse("its key would be sent unencrypted to %s, as base-url says http: write https, or add insecure: true", settings.HostOf(laneFlags.BaseURL))
		}
		if err != nil {
			return nil, inLane(flags.Fleet.File, spec, err)
		}
		account.addLane(flags.Fleet.File, lane)
	}
	account.nameAccounts()
	account.shares.begin(account.Lanes)
	for _, name := range flags.Fleet.Unused() {
		account.Note(event.Unused, fmt.Sprintf("%s:%d: lane %s is in no pool: it gets no line", flags.Fleet.File, flags.Fleet.Lane(name).Line, name))
	}
	var err error
	account.Fleet, err = fleet.New(account.clients()...)
	return account, err
}

// providerName names the provider of a run over several lanes.
func providerName(f *settings.Fleet) string {
	const listed = 3 // as many names as a row of the panel shows
	if names := f.Names(); len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d lanes", len(f.Lanes))
}

// inLane adds the lane to the text of an error.
func inLane(file string, spec *settings.LaneSpec, err error) error {
	if end, is := errors.AsType[*exit.Ending](err); is {
		text, _, _ := strings.Cut(end.Text, "\nthen run:")
		end.Text = spec.InFile(file, text)
		if end.Resume != "" {
			end.Text += "\nthen run:"
		}
	}
	return err
}

// addLane adds a lane with its notices. A notice about simulation is added only once.
func (b *Account) addLane(file string, lane *Account) {
	b.Lanes = append(b.Lanes, lane)
	for _, notice := range lane.Notice {
		if lane.Spec.Base != "" { // the lane of the file says the same
			break
		}
		if notice.Code == event.Simulated {
			if !slices.Contains(b.Notice, notice) {
				b.Notice = append(b.Notice, notice)
			}
			continue
		}
		b.Note(notice.Code, lane.Spec.InFile(file, notice.Text))
	}
	if lane.Books != nil {
		b.Books = b.booksOfLanes
	}
}

// booksOfLanes returns the sum of the books of all simulated lanes.
func (b *Account) booksOfLanes() (all sim.Books) {
	for _, lane := range b.Lanes {
		books := lane.Books()
		all.Received += books.Received
		all.Accepted += books.Accepted
		all.Refused429 += books.Refused429
	}
	return all
}

// nameAccounts sets the account of each lane. Lanes with one key are of one account, unless the file says
// otherwise.
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

// clients returns a client for each lane without a quota, and one for all lanes of each quota.
func (b *Account) clients() (clients []fleet.Lane) {
	quotas := map[string]*quotaClient{}
	for _, lane := range b.Lanes {
		client := &laneClient{spec: lane.Spec, client: lane.Fleet.Of(""), overridesMaxTokens: lane.flags.MaxTokensGiven, maxTokens: lane.flags.MaxTokens}
		quota := lane.Spec.Quota
		switch {
		case quota == "":
			clients = append(clients, fleet.Lane{Name: lane.Spec.Name, Client: client})
		case quotas[quota] == nil:
			quotas[quota] = &quotaClient{lanes: []*laneClient{client}}
			clients = append(clients, fleet.Lane{Name: quota, Client: quotas[quota]})
		default:
			quotas[quota].lanes = append(quotas[quota].lanes, client)
		}
	}
	return clients
}

// A laneClient calls the provider of a lane, by the lane's own word for the model.
type laneClient struct {
	spec               *settings.LaneSpec
	client             fleet.Client
	overridesMaxTokens bool // the lane has a bound of its own on answers without one
	maxTokens          int  // in tokens
}

// Do makes one call with the lane's own word for the model. The body keeps all other bytes.
func (c *laneClient) Do(ctx context.Context, request provider.Request) (provider.Reply, error) {
	laneModel, ok := c.spec.Serves(request.Model)
	if !ok {
		return provider.Reply{}, c.notServed(request.Model)
	}
	lineModel := request.Model
	if laneModel != lineModel {
		request.Model, request.Body = laneModel, withModel(request.Body, laneModel)
	}
	if c.overridesMaxTokens {
		request.MaxTokens = c.maxTokens
	}
	reply, err := c.client.Do(ctx, request)
	if laneModel != lineModel && reply.Served == "" {
		reply.Served = laneModel
	}
	return reply, err
}

// Pass forwards one call as it came, but with the lane's own word for the model.
func (c *laneClient) Pass(ctx context.Context, request provider.Request, streams bool, header http.Header, query string) (*http.Response, error) {
	laneModel, ok := c.spec.Serves(request.Model)
	if !ok {
		return nil, c.notServed(request.Model)
	}
	if laneModel != request.Model {
		request.Model, request.Body = laneModel, withModel(request.Body, laneModel)
	}
	return c.client.(Passer).Pass(ctx, request, streams, header, query)
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

// withModel returns a copy of the body with another model. A body without a model is returned as it is, since
// its address names the model.
func withModel(body []byte, model string) []byte {
	for _, member := range rawjson.Members(rawjson.Trim(body), nil) {
		if string(member.Name) != "model" {
			continue
		}
		object := rawjson.Trim(body)
		start := member.Start + bytes.LastIndex(member.Raw, member.Value)
		changed := append(make([]byte, 0, len(object)+len(model)+2), object[:start]...)
		changed = rawjson.AppendString(changed, model)
		return append(changed, object[start+len(member.Value):]...)
	}
	return body
}

// quotaClient are the lanes of one quota: calls take turns among those that serve their model.
type quotaClient struct {
	lanes []*laneClient
	next  atomic.Uint64
}

// Do makes one call, by the next lane that serves its model.
func (t *quotaClient) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	return t.lane(r.Model).Do(ctx, r)
}

// Pass makes one call as it came, by the next lane that serves its model.
func (t *quotaClient) Pass(ctx context.Context, r provider.Request, streams bool, header http.Header, query string) (*http.Response, error) {
	return t.lane(r.Model).Pass(ctx, r, streams, header, query)
}

// List asks the provider of the first lane for its list of models.
func (t *quotaClient) List(ctx context.Context, header http.Header) (*http.Response, error) {
	return t.lanes[0].List(ctx, header)
}

// lane returns the next lane that serves a model. If none does, it returns one whose call fails with that
// reason.
func (t *quotaClient) lane(model string) *laneClient {
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
func (t *quotaClient) CloseIdle() {
	for _, lane := range t.lanes {
		lane.CloseIdle()
	}
}

// LaneNamed returns the account behind a lane's name in results. The name may be that of the lane, of one of
// its models, or of a quota; nil if there is none.
func (b *Account) LaneNamed(machine string) *Account {
	name, _, _ := strings.Cut(machine, "/")
	for _, lane := range b.Lanes {
		if lane.Spec.Name == name || lane.Spec.Quota == machine {
			return lane
		}
	}
	return nil
}

// Bill returns the cost of a model's tokens on a machine's lane, and the source of the price; false if it is
// unknown. It looks up the lane's own word for the model first. The table has the price for a lane that the
// account does not know.
func (b *Account) Bill(table *price.Table, machine, model string, usage provider.Usage, at time.Time) (cost limiter.Money, source string, known bool) {
	if machine == "" {
		return table.Cost(model, usage, at)
	}
	lane := b.LaneNamed(machine)
	if lane == nil {
		return table.Cost(model, usage, at)
	}
	word, served := lane.Spec.Serves(model)
	if !served {
		word = model
	}
	if cost, source, known = lane.Spec.Flags.Known.Cost(word, usage, at); !known && word != model {
		return lane.Spec.Flags.Known.Cost(model, usage, at) // a deployment has a name of its own
	}
	return cost, source, known
}

// Called returns the destination of a call on a machine's lane: the vendor's name in the catalog, its host,
// and its word for the model.
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

// laneFor returns the account behind a lane's name in results. For a quota it is the first lane that serves
// the model.
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

// lanesAdvice returns what a user may do about a lane whose key was refused.
func (b *Account) lanesAdvice() string {
	var places []string
	for _, lane := range b.Lanes {
		if lane.Proven != "" {
			places = append(places, lane.Spec.Name+": "+lane.Proven)
		}
	}
	return fmt.Sprintf("check the keys (%s), as with headrace lanes --try --config %s", strings.Join(places, ", "), settings.ShellQuote(b.flags.Config))
}

// meetByLanes meets the neighbours of each key, and returns a function that leaves them all.
func (b *Account) meetByLanes(notice func(event.Code, string)) (leave func()) {
	met := map[string]bool{}
	var leaves []func()
	for _, lane := range b.Lanes {
		key := cmp.Or(lane.key(), lane.Identity())
		if met[key] || lane.Books != nil {
			continue
		}
		met[key] = true
		lane.flags.Output, lane.ServesAt = b.flags.Output, b.ServesAt
		leaves = append(leaves, lane.MeetNeighbours(notice))
	}
	return func() {
		for _, leaveOne := range leaves {
			leaveOne()
		}
	}
}

// organisations knows which lanes draw on the limits of one organisation. The workers tell it what
// answers say.
type organisations struct {
	mu         sync.Mutex
	lanes      []*Account
	org        map[*Account]string // what its first answer said
	isReported map[[2]*Account]bool
	notice     func(event.Code, string) // nil: nobody listens yet
	pending    []string                 // until somebody listens
}

func (s *organisations) begin(lanes []*Account) {
	s.lanes, s.org, s.isReported = lanes, map[*Account]string{}, map[[2]*Account]bool{}
}

// noteOrganisation stores the organisation that an answer of a lane names. It gives a notice if another lane
// has the same one, and so the same limits.
func (s *organisations) noteOrganisation(lane *Account, org string) {
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
		if other == lane || s.org[other] != org || other.Name != lane.Name || s.isReported[[2]*Account{other, lane}] || !shareLimits(other, lane) {
			continue
		}
		s.isReported[[2]*Account{other, lane}] = true
		s.notify(sharedLimits(other, lane, printable.Line(org)))
	}
}

// notify passes a notice on, or keeps it until somebody listens.
func (s *organisations) notify(text string) {
	if s.notice == nil {
		s.pending = append(s.pending, text)
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

// SayShared gives notices about lanes that draw on the limits of one organisation, once their answers show
// it. Lanes with one key get theirs at once.
func (b *Account) SayShared(notice func(event.Code, string)) {
	if b.Lanes == nil {
		return
	}
	b.shares.mu.Lock()
	defer b.shares.mu.Unlock()
	b.shares.notice = notice
	for _, text := range b.shares.pending {
		b.shares.notify(text)
	}
	for i, lane := range b.Lanes {
		for _, other := range b.Lanes[:i] {
			if key := lane.key(); key == "" || key != other.key() || other.Name != lane.Name || b.shares.isReported[[2]*Account{other, lane}] || !shareLimits(other, lane) {
				continue
			}
			b.shares.isReported[[2]*Account{other, lane}] = true
			b.shares.notify(sharedLimits(other, lane, "one key"))
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

// shareLimits reports whether two lanes of one organisation may call one model. It is false if a quota or an
// account joins them, as the user then knows.
func shareLimits(a, b *Account) bool {
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
