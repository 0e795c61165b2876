package settings

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/yamlfile"
)

// ownWords are the words of a lane that no flag has, in the order of the documentation.
var ownWords = []string{"models", "account", "quota", "weight", "same-as", "insecure", "headers"}

// laneSections are the sections of settings that a lane may have of its own.
var laneSections = []string{"rate", "ramp", "cooldown", "error-window", "breaker"}

// MostLanes bounds the lanes and the pools of a file. Nobody has as many keys; more are a
// slip of a program that wrote the file.
const MostLanes = 256

// laneName matches the names of lanes, pools, quotas and accounts. They stand in results, and a
// slash divides a lane from its model.
var laneName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

const laneNameForm = "use letters, digits, dots, - and _, up to 63 of them"

// fleet takes lanes and pools, once all flags of the file are known.
func (c *configFile) fleet(lanes, pools *ast.MappingValueNode) *Fleet {
	switch {
	case lanes == nil && pools == nil:
		return nil
	case lanes == nil:
		c.Complain(pools.Key, "pools are given, and no lanes", "write lanes: above, with a name and a provider for each")
		return nil
	}
	f := &Fleet{File: c.Name, Line: yamlfile.LineOf(lanes.Key), Text: textOf(lanes, pools)}
	for _, one := range c.named(lanes, "lane", `"fast:" with "provider: openai" below it`) {
		f.Lanes = append(f.Lanes, c.laneSpec(one))
	}
	if pools != nil {
		for _, one := range c.named(pools, "pool", `"main:" with "spread: [fast]" below it`) {
			f.Pools = append(f.Pools, c.poolSpec(one))
		}
	}
	return f
}

// named returns the entries of a map of names, and complains about those that are none.
func (c *configFile) named(s *ast.MappingValueNode, kind, example string) (entries []*ast.MappingValueNode) {
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, s.Key.GetToken().Value+" is not a map of names", "write one below it, indented, as in "+example)
	}
	if len(body) > MostLanes {
		c.Complain(s.Key, fmt.Sprintf("%d %ss are too many", len(body), kind), fmt.Sprintf("a file may have up to %d", MostLanes))
		return nil
	}
	for _, one := range body {
		name := one.Key.GetToken().Value
		switch {
		case exit.WithoutKeys(name) != name:
			c.Complain(one.Key, "a name looks like a key", "keys are not allowed in this file: "+keyPlace)
		case !laneName.MatchString(name):
			c.Complain(one.Key, fmt.Sprintf("%q is not a name of a %s", Clipped(name), kind), laneNameForm)
		default:
			entries = append(entries, one)
		}
	}
	return entries
}

const keyPlace = "put it into a variable, and name the variable with api-key-env"

// laneSpec takes one lane. It reads words that are flags as a run of this lane alone would.
func (c *configFile) laneSpec(s *ast.MappingValueNode) LaneSpec {
	l := LaneSpec{Name: s.Key.GetToken().Value, Line: yamlfile.LineOf(s.Key), Flags: &Flags{}}
	f := l.Flags
	f.Register(pflag.NewFlagSet("lane", pflag.ContinueOnError))
	f.Config = c.Name // for words about where an address is from
	f.Lanes = newLaneSettings(c.Name)
	own := &configFile{File: &yamlfile.File{Name: c.Name}, flags: f.All, lanes: f.Lanes, headers: &f.headers}
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, fmt.Sprintf("lane %s has no words", l.Name), `write them below it, indented, as in "provider: openai"`)
	}
	for _, one := range body {
		own.laneWord(&l, one)
	}
	f.ConfigBaseURL = own.baseURL
	c.Faults = append(c.Faults, own.Faults...)
	return l
}

// laneWord takes one word of a lane.
func (c *configFile) laneWord(l *LaneSpec, s *ast.MappingValueNode) {
	name := s.Key.GetToken().Value
	switch {
	case IsKeyFlag(name):
		c.Complain(s.Key, "keys are not allowed in this file", keyPlace)
	case name == "headers":
		c.headersSection(s)
		c.notOfKeys(s)
	case name == "models":
		l.Models = c.models(s)
	case name == "price":
		c.price(s)
	case slices.Contains(laneSections, name):
		c.lane(s)
	case slices.Contains(ofLanes, name):
		c.setting(s)
	case slices.Contains(ownWords, name):
		c.ownWord(l, s)
	default:
		all := slices.Concat(ofLanes, ownWords, laneSections)
		c.Complain(s.Key, fmt.Sprintf("lane %s: unknown word %q", l.Name, Clipped(exit.WithoutKeys(name))), DidYouMean(Nearest(name, all))+"headrace help config lists the words of a lane")
	}
}

// price takes the price of a lane: as --price has it, by names, or 0 for a lane that costs nothing.
func (c *configFile) price(s *ast.MappingValueNode) {
	const advice = `write USD per million tokens, as in "price: {input: 1, output: 5, cached: 0.1, cache-write: 1.25}", or 0`
	text, ok := yamlfile.Plain(s.Value)
	if body := yamlfile.Section(s); len(body) > 0 {
		rates := map[string]string{}
		for _, one := range body {
			name := one.Key.GetToken().Value
			rate, isPlain := yamlfile.Plain(one.Value)
			if !slices.Contains(priceParts, name) || !isPlain {
				c.Complain(one.Key, fmt.Sprintf("price: %q is not a part of a price", Clipped(name)), advice)
				return
			}
			rates[name] = rate
		}
		var parts []string
		for _, name := range priceParts {
			if rates[name] == "" && len(rates) > len(parts) {
				c.Complain(s.Key, "price has no "+name, advice)
				return
			}
			if rates[name] != "" {
				parts = append(parts, rates[name])
			}
		}
		text, ok = strings.Join(parts, ","), true
	}
	if text == "0" {
		text = "0,0"
	}
	if !ok || text == "" {
		c.Complain(s.Key, "price is not a price", advice)
		return
	}
	_ = c.flags.Set("price", text) // it takes every text, which is checked later
}

// priceParts are the parts of a price, in the order of --price.
var priceParts = []string{"input", "output", "cached", "cache-write"}

// notOfKeys refuses headers that carry the key: a lane names its key otherwise.
func (c *configFile) notOfKeys(s *ast.MappingValueNode) {
	for _, one := range yamlfile.Section(s) {
		if name := one.Key.GetToken().Value; slices.Contains(ofKeys, http.CanonicalHeaderKey(name)) {
			c.Complain(one.Key, name+" carries the key", keyPlace)
		}
	}
}

// ownWord takes a word that has a single value and is no flag.
func (c *configFile) ownWord(l *LaneSpec, s *ast.MappingValueNode) {
	name := s.Key.GetToken().Value
	value, ok := yamlfile.Plain(s.Value)
	if !ok || value == "" {
		c.Complain(s.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	switch name {
	case "weight":
		if _, err := fmt.Sscanf(value, "%d", &l.Weight); err != nil || l.Weight < 1 || l.Weight > batch.MaxWeight || fmt.Sprint(l.Weight) != value {
			c.Complain(s.Key, fmt.Sprintf("weight: %q is not a share", Clipped(value)), fmt.Sprintf("it may be a whole number from 1 to %d", batch.MaxWeight))
		}
	case "insecure":
		if value != "true" && value != "false" {
			c.Complain(s.Key, fmt.Sprintf("insecure: %q is not true or false", Clipped(value)), "correct or remove it")
		}
		l.Insecure = value == "true"
	default:
		isModel := name == "same-as"
		if exit.WithoutKeys(value) != value {
			c.Complain(s.Key, name+" looks like a key", "keys are not allowed in this file: "+keyPlace)
			return
		}
		if !isModel && !laneName.MatchString(value) {
			c.Complain(s.Key, fmt.Sprintf("%s: %q is not a name", name, Clipped(value)), laneNameForm)
			return
		}
		*map[string]*string{"account": &l.Account, "quota": &l.Quota, "same-as": &l.SameAs}[name] = value
	}
}

// models takes the map of models: the word of the lines, and that of the lane.
func (c *configFile) models(s *ast.MappingValueNode) map[string]string {
	const advice = `write the model of the lines and that of the lane, as in "gpt-5-mini: mini-prod"`
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, "models is not a map", advice)
	}
	all := make(map[string]string, len(body))
	for _, one := range body {
		word, ok := yamlfile.Plain(one.Value)
		from, isPlain := plainKey(one.Key)
		if !ok || !isPlain || word == "" || from == "" {
			c.Complain(one.Key, "models: not a model and its name here", advice)
			continue
		}
		all[from] = word
	}
	return all
}

// plainKey returns a key as it is written. Merge keys and complex ones have no meaning here.
func plainKey(k ast.MapKeyNode) (string, bool) {
	if node, is := k.(ast.Node); is && !k.IsMergeKey() {
		return yamlfile.Plain(node)
	}
	return "", false
}

// poolSpec takes one pool.
func (c *configFile) poolSpec(s *ast.MappingValueNode) PoolSpec {
	p := PoolSpec{Name: s.Key.GetToken().Value, Line: yamlfile.LineOf(s.Key)}
	words := map[string]*ast.MappingValueNode{}
	for _, one := range yamlfile.Section(s) {
		name := one.Key.GetToken().Value
		if words[name] = one; !slices.Contains(poolWords, name) {
			c.Complain(one.Key, fmt.Sprintf("pool %s: unknown word %q", p.Name, Clipped(exit.WithoutKeys(name))), DidYouMean(Nearest(name, poolWords))+"there are "+strings.Join(poolWords, ", "))
		}
	}
	if one := words["lines"]; one != nil {
		c.poolLines(&p, one)
	}
	var policies []*ast.MappingValueNode
	for _, name := range []string{"spread", "prefer", "sticky"} {
		if at := words[name]; at != nil {
			policies = append(policies, at)
		}
	}
	if len(policies) == 0 {
		c.Complain(s.Key, fmt.Sprintf("pool %s has no policy", p.Name), `write "spread: [A, B]", or "prefer: [A, B]" for lanes in order`)
		return p
	}
	policy := policies[0].Key.GetToken().Value
	if len(policies) > 1 {
		another := policies[1].Key
		c.Complain(another, fmt.Sprintf("pool %s has two policies, %s and %s", p.Name, policy, another.GetToken().Value), "keep one")
		return p
	}
	switch policy {
	case "spread":
		p.Tiers = [][]string{c.List(policies[0], "lanes")}
	case "prefer":
		p.Tiers, p.After = c.tiers(policies[0]), DefaultAfter
	case "sticky":
		p.Tiers, p.By, p.Patience = [][]string{c.List(policies[0], "lanes")}, ByPrefix, DefaultPatience
	}
	for _, one := range []struct {
		name, policy string
		to           *time.Duration
	}{{"after", "prefer", &p.After}, {"spill", "prefer", &p.Spill}, {"patience", "sticky", &p.Patience}} {
		if at := words[one.name]; at != nil {
			c.wait(at, one.to, one.policy, policy)
		}
	}
	if at := words["by"]; at != nil {
		c.by(at, &p, policy)
	}
	return p
}

// poolWords are the words of a pool.
var poolWords = []string{"lines", "spread", "prefer", "sticky", "after", "spill", "by", "patience"}

// needs complains about a word of a pool that has another policy than the word's.
func (c *configFile) needs(s *ast.MappingValueNode, policy, has string) bool {
	if policy == has {
		return false
	}
	advice := map[string]string{
		"prefer": "only a pool that prefers lanes has later ones: remove it, or write prefer",
		"sticky": "only a line of a sticky pool has a home: remove it, or write sticky",
	}
	c.Complain(s.Key, s.Key.GetToken().Value+" needs "+policy, advice[policy])
	return true
}

// by takes what decides the home of a line.
func (c *configFile) by(s *ast.MappingValueNode, p *PoolSpec, policy string) {
	if c.needs(s, "sticky", policy) {
		return
	}
	text, ok := yamlfile.Plain(s.Value)
	if field, of := strings.CutPrefix(text, ByMetadata); !ok || text != ByPrefix && (!of || field == "") {
		c.Complain(s.Key, fmt.Sprintf("by: %q is not prefix or metadata.FIELD", Clipped(text)), "write prefix for the beginning of the prompt, or metadata. and the name of a field")
		return
	}
	p.By = text
}

// wait takes a time of a pool of one policy.
func (c *configFile) wait(s *ast.MappingValueNode, to *time.Duration, policy, has string) {
	if c.needs(s, policy, has) {
		return
	}
	name := s.Key.GetToken().Value
	text, ok := yamlfile.Plain(s.Value)
	d, err := time.ParseDuration(text)
	switch {
	case !ok || err != nil || d < 0 || d > 24*time.Hour || name != "after" && d == 0:
		c.Complain(s.Key, fmt.Sprintf("%s: %q is not a wait", name, Clipped(text)), "write a length of time up to 24h, such as 30s or 2m")
	default:
		*to = d
	}
}

// poolLines takes what says which lines are a pool's.
func (c *configFile) poolLines(p *PoolSpec, s *ast.MappingValueNode) {
	const advice = `write it as in "lines: {model: [gpt-5-mini, \"qwen*\"]}"`
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, "lines is not a map", advice)
	}
	for _, one := range body {
		switch name := one.Key.GetToken().Value; name {
		case "model":
			for _, pattern := range c.List(one, "models") {
				p.models = append(p.models, globOf(pattern))
				p.Models = append(p.Models, pattern)
			}
		case "endpoint":
			p.Endpoints = c.List(one, "endpoints")
			for _, endpoint := range p.Endpoints {
				if !slices.Contains(prompts.Operations(), endpoint) {
					c.Complain(one.Key, fmt.Sprintf("endpoint: %q is not known", Clipped(endpoint)), "use "+strings.Join(prompts.Operations(), ", "))
				}
			}
		default:
			c.Complain(one.Key, fmt.Sprintf("lines: unknown word %q", Clipped(exit.WithoutKeys(name))), "there are model and endpoint")
		}
	}
}

// tiers takes a list whose entries are lanes, or lists of lanes that are as good as each other.
func (c *configFile) tiers(s *ast.MappingValueNode) (tiers [][]string) {
	const advice = `write the lanes in order, as in "prefer: [[a, b], c]"`
	sequence, is := s.Value.(*ast.SequenceNode)
	if !is || len(sequence.Values) == 0 {
		c.Complain(s.Key, "prefer is not a list of lanes", advice)
		return nil
	}
	for _, v := range sequence.Values {
		if word, ok := yamlfile.Plain(v); ok && word != "" {
			tiers = append(tiers, []string{word})
			continue
		}
		inner, is := v.(*ast.SequenceNode)
		if !is || len(inner.Values) == 0 {
			c.Complain(v, "prefer has an entry that is not a lane", advice)
			continue
		}
		var tier []string
		for _, one := range inner.Values {
			word, ok := yamlfile.Plain(one)
			if !ok || word == "" {
				c.Complain(one, "prefer has an entry that is not a lane", advice)
				continue
			}
			tier = append(tier, word)
		}
		tiers = append(tiers, tier)
	}
	return tiers
}
