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

// readFleet reads lanes and pools. It comes after all flags of the file are known.
func (c *configFile) readFleet(lanes, pools *ast.MappingValueNode) *Fleet {
	switch {
	case lanes == nil && pools == nil:
		return nil
	case lanes == nil:
		c.Complain(pools.Key, "pools are given, and no lanes", "write lanes: above, with a name and a provider for each")
		return nil
	}
	fleet := &Fleet{File: c.Name, Line: yamlfile.LineOf(lanes.Key), Text: textOf(lanes, pools)}
	for _, entry := range c.namedEntries(lanes, "lane", `"fast:" with "provider: openai" below it`) {
		fleet.Lanes = append(fleet.Lanes, c.readLane(entry))
	}
	if pools != nil {
		for _, entry := range c.namedEntries(pools, "pool", `"main:" with "spread: [fast]" below it`) {
			fleet.Pools = append(fleet.Pools, c.readPool(entry))
		}
	}
	return fleet
}

// namedEntries returns the entries of a map from names, and complains about invalid names.
func (c *configFile) namedEntries(section *ast.MappingValueNode, kind, example string) (entries []*ast.MappingValueNode) {
	body := yamlfile.Section(section)
	if len(body) == 0 {
		c.Complain(section.Key, section.Key.GetToken().Value+" is not a map of names", "write one below it, indented, as in "+example)
	}
	if len(body) > MostLanes {
		c.Complain(section.Key, fmt.Sprintf("%d %ss are too many", len(body), kind), fmt.Sprintf("a file may have up to %d", MostLanes))
		return nil
	}
	for _, entry := range body {
		name := entry.Key.GetToken().Value
		switch {
		case exit.WithoutKeys(name) != name:
			c.Complain(entry.Key, "a name looks like a key", "keys are not allowed in this file: "+keyPlace)
		case !laneName.MatchString(name):
			c.Complain(entry.Key, fmt.Sprintf("%q is not a name of a %s", Clipped(name), kind), laneNameForm)
		default:
			entries = append(entries, entry)
		}
	}
	return entries
}

const keyPlace = "put it into a variable, and name the variable with api-key-env"

// readLane reads one lane. Words that are flags mean what they mean in a run of this lane alone.
func (c *configFile) readLane(s *ast.MappingValueNode) LaneSpec {
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
	for _, entry := range body {
		own.setLaneWord(&l, entry)
	}
	f.ConfigBaseURL = own.baseURL
	c.Faults = append(c.Faults, own.Faults...)
	return l
}

// setLaneWord applies one word of a lane.
func (c *configFile) setLaneWord(lane *LaneSpec, entry *ast.MappingValueNode) {
	name := entry.Key.GetToken().Value
	switch {
	case IsKeyFlag(name):
		c.Complain(entry.Key, "keys are not allowed in this file", keyPlace)
	case name == "headers":
		c.setHeaders(entry)
		c.refuseKeyHeaders(entry)
	case name == "models":
		lane.Models = c.readModels(entry)
	case name == "price":
		c.setPrice(entry)
	case slices.Contains(laneSections, name):
		c.setLaneEntry(entry)
	case slices.Contains(ofLanes, name):
		c.setEntry(entry)
	case slices.Contains(ownWords, name):
		c.setOwnWord(lane, entry)
	default:
		all := slices.Concat(ofLanes, ownWords, laneSections)
		c.Complain(entry.Key, fmt.Sprintf("lane %s: unknown word %q", lane.Name, Clipped(exit.WithoutKeys(name))), DidYouMean(Nearest(name, all))+"headrace help config lists the words of a lane")
	}
}

// setPrice reads the price of a lane: as --price writes it, by names, or 0 for a lane that costs nothing.
func (c *configFile) setPrice(entry *ast.MappingValueNode) {
	const advice = `write USD per million tokens, as in "price: {input: 1, output: 5, cached: 0.1, cache-write: 1.25}", or 0`
	text, ok := yamlfile.Plain(entry.Value)
	if body := yamlfile.Section(entry); len(body) > 0 {
		rates := map[string]string{}
		for _, part := range body {
			name := part.Key.GetToken().Value
			rate, isPlain := yamlfile.Plain(part.Value)
			if !slices.Contains(priceParts, name) || !isPlain {
				c.Complain(part.Key, fmt.Sprintf("price: %q is not a part of a price", Clipped(name)), advice)
				return
			}
			rates[name] = rate
		}
		var parts []string
		for _, name := range priceParts {
			if rates[name] == "" && len(rates) > len(parts) {
				c.Complain(entry.Key, "price has no "+name, advice)
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
		c.Complain(entry.Key, "price is not a price", advice)
		return
	}
	_ = c.flags.Set("price", text) // it takes every text, which is checked later
}

// priceParts are the parts of a price, in the order of --price.
var priceParts = []string{"input", "output", "cached", "cache-write"}

// refuseKeyHeaders complains about headers that carry the key: a lane names its key with api-key-env.
func (c *configFile) refuseKeyHeaders(s *ast.MappingValueNode) {
	for _, one := range yamlfile.Section(s) {
		if name := one.Key.GetToken().Value; slices.Contains(ofKeys, http.CanonicalHeaderKey(name)) {
			c.Complain(one.Key, name+" carries the key", keyPlace)
		}
	}
}

// setOwnWord applies a word of a lane that has a single value and is not a flag.
func (c *configFile) setOwnWord(lane *LaneSpec, entry *ast.MappingValueNode) {
	name := entry.Key.GetToken().Value
	value, ok := yamlfile.Plain(entry.Value)
	if !ok || value == "" {
		c.Complain(entry.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	switch name {
	case "weight":
		if _, err := fmt.Sscanf(value, "%d", &lane.Weight); err != nil || lane.Weight < 1 || lane.Weight > batch.MaxWeight || fmt.Sprint(lane.Weight) != value {
			c.Complain(entry.Key, fmt.Sprintf("weight: %q is not a share", Clipped(value)), fmt.Sprintf("it may be a whole number from 1 to %d", batch.MaxWeight))
		}
	case "insecure":
		if value != "true" && value != "false" {
			c.Complain(entry.Key, fmt.Sprintf("insecure: %q is not true or false", Clipped(value)), "correct or remove it")
		}
		lane.Insecure = value == "true"
	default:
		isModel := name == "same-as"
		if exit.WithoutKeys(value) != value {
			c.Complain(entry.Key, name+" looks like a key", "keys are not allowed in this file: "+keyPlace)
			return
		}
		if !isModel && !laneName.MatchString(value) {
			c.Complain(entry.Key, fmt.Sprintf("%s: %q is not a name", name, Clipped(value)), laneNameForm)
			return
		}
		*map[string]*string{"account": &lane.Account, "quota": &lane.Quota, "same-as": &lane.SameAs}[name] = value
	}
}

// readModels returns the map from the models of lines to the lane's names for them.
func (c *configFile) readModels(s *ast.MappingValueNode) map[string]string {
	const advice = `write the model of the lines and that of the lane, as in "gpt-5-mini: mini-prod"`
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, "models is not a map", advice)
	}
	models := make(map[string]string, len(body))
	for _, entry := range body {
		laneModel, ok := yamlfile.Plain(entry.Value)
		lineModel, isPlain := plainKey(entry.Key)
		if !ok || !isPlain || laneModel == "" || lineModel == "" {
			c.Complain(entry.Key, "models: not a model and its name here", advice)
			continue
		}
		models[lineModel] = laneModel
	}
	return models
}

// plainKey returns a key as it is written. Merge keys and complex ones have no meaning here.
func plainKey(k ast.MapKeyNode) (string, bool) {
	if node, is := k.(ast.Node); is && !k.IsMergeKey() {
		return yamlfile.Plain(node)
	}
	return "", false
}

// readPool reads one pool: its lines, its policy, and the waits that belong to the policy.
func (c *configFile) readPool(section *ast.MappingValueNode) PoolSpec {
	pool := PoolSpec{Name: section.Key.GetToken().Value, Line: yamlfile.LineOf(section.Key)}
	words := map[string]*ast.MappingValueNode{}
	for _, entry := range yamlfile.Section(section) {
		name := entry.Key.GetToken().Value
		if words[name] = entry; !slices.Contains(poolWords, name) {
			c.Complain(entry.Key, fmt.Sprintf("pool %s: unknown word %q", pool.Name, Clipped(exit.WithoutKeys(name))), DidYouMean(Nearest(name, poolWords))+"there are "+strings.Join(poolWords, ", "))
		}
	}
	if entry := words["lines"]; entry != nil {
		c.setPoolLines(&pool, entry)
	}
	var policies []*ast.MappingValueNode
	for _, name := range []string{"spread", "prefer", "sticky"} {
		if entryOfWord := words[name]; entryOfWord != nil {
			policies = append(policies, entryOfWord)
		}
	}
	if len(policies) == 0 {
		c.Complain(section.Key, fmt.Sprintf("pool %s has no policy", pool.Name), `write "spread: [A, B]", or "prefer: [A, B]" for lanes in order`)
		return pool
	}
	policy := policies[0].Key.GetToken().Value
	if len(policies) > 1 {
		another := policies[1].Key
		c.Complain(another, fmt.Sprintf("pool %s has two policies, %s and %s", pool.Name, policy, another.GetToken().Value), "keep one")
		return pool
	}
	switch policy {
	case "spread":
		pool.Tiers = [][]string{c.List(policies[0], "lanes")}
	case "prefer":
		pool.Tiers, pool.After = c.readTiers(policies[0]), DefaultAfter
	case "sticky":
		pool.Tiers, pool.By, pool.Patience = [][]string{c.List(policies[0], "lanes")}, ByPrefix, DefaultPatience
	}
	for _, wait := range []struct {
		name, policy string
		to           *time.Duration
	}{{"after", "prefer", &pool.After}, {"spill", "prefer", &pool.Spill}, {"patience", "sticky", &pool.Patience}} {
		if entryOfWord := words[wait.name]; entryOfWord != nil {
			c.setWait(entryOfWord, wait.to, wait.policy, policy)
		}
	}
	if entryOfWord := words["by"]; entryOfWord != nil {
		c.setHome(entryOfWord, &pool, policy)
	}
	return pool
}

// poolWords are the words of a pool.
var poolWords = []string{"lines", "spread", "prefer", "sticky", "after", "spill", "by", "patience"}

// lacksPolicy reports whether a word of a pool needs another policy than the pool has. If so, it complains.
func (c *configFile) lacksPolicy(entry *ast.MappingValueNode, needed, policyOfPool string) bool {
	if needed == policyOfPool {
		return false
	}
	advice := map[string]string{
		"prefer": "only a pool that prefers lanes has later ones: remove it, or write prefer",
		"sticky": "only a line of a sticky pool has a home: remove it, or write sticky",
	}
	c.Complain(entry.Key, entry.Key.GetToken().Value+" needs "+needed, advice[needed])
	return true
}

// setHome reads the word "by", which decides the home of a line in a sticky pool.
func (c *configFile) setHome(entry *ast.MappingValueNode, pool *PoolSpec, policy string) {
	if c.lacksPolicy(entry, "sticky", policy) {
		return
	}
	text, ok := yamlfile.Plain(entry.Value)
	if field, isMetadata := strings.CutPrefix(text, ByMetadata); !ok || text != ByPrefix && (!isMetadata || field == "") {
		c.Complain(entry.Key, fmt.Sprintf("by: %q is not prefix or metadata.FIELD", Clipped(text)), "write prefix for the beginning of the prompt, or metadata. and the name of a field")
		return
	}
	pool.By = text
}

// setWait reads a wait of a pool, which only one policy has.
func (c *configFile) setWait(entry *ast.MappingValueNode, to *time.Duration, needed, policyOfPool string) {
	if c.lacksPolicy(entry, needed, policyOfPool) {
		return
	}
	name := entry.Key.GetToken().Value
	text, ok := yamlfile.Plain(entry.Value)
	wait, err := time.ParseDuration(text)
	switch {
	case !ok || err != nil || wait < 0 || wait > 24*time.Hour || name != "after" && wait == 0:
		c.Complain(entry.Key, fmt.Sprintf("%s: %q is not a wait", name, Clipped(text)), "write a length of time up to 24h, such as 30s or 2m")
	default:
		*to = wait
	}
}

// setPoolLines reads the models and endpoints whose lines go to the pool.
func (c *configFile) setPoolLines(pool *PoolSpec, section *ast.MappingValueNode) {
	const advice = `write it as in "lines: {model: [gpt-5-mini, \"qwen*\"]}"`
	body := yamlfile.Section(section)
	if len(body) == 0 {
		c.Complain(section.Key, "lines is not a map", advice)
	}
	for _, entry := range body {
		switch name := entry.Key.GetToken().Value; name {
		case "model":
			for _, pattern := range c.List(entry, "models") {
				pool.models = append(pool.models, globOf(pattern))
				pool.Models = append(pool.Models, pattern)
			}
		case "endpoint":
			pool.Endpoints = c.List(entry, "endpoints")
			for _, endpoint := range pool.Endpoints {
				if !slices.Contains(prompts.Operations(), endpoint) {
					c.Complain(entry.Key, fmt.Sprintf("endpoint: %q is not known", Clipped(endpoint)), "use "+strings.Join(prompts.Operations(), ", "))
				}
			}
		default:
			c.Complain(entry.Key, fmt.Sprintf("lines: unknown word %q", Clipped(exit.WithoutKeys(name))), "there are model and endpoint")
		}
	}
}

// readTiers reads a list whose entries are lanes, or lists of lanes that are equally preferred.
func (c *configFile) readTiers(s *ast.MappingValueNode) (tiers [][]string) {
	const advice = `write the lanes in order, as in "prefer: [[a, b], c]"`
	sequence, isSequence := s.Value.(*ast.SequenceNode)
	if !isSequence || len(sequence.Values) == 0 {
		c.Complain(s.Key, "prefer is not a list of lanes", advice)
		return nil
	}
	for _, value := range sequence.Values {
		if word, ok := yamlfile.Plain(value); ok && word != "" {
			tiers = append(tiers, []string{word})
			continue
		}
		inner, isSequence := value.(*ast.SequenceNode)
		if !isSequence || len(inner.Values) == 0 {
			c.Complain(value, "prefer has an entry that is not a lane", advice)
			continue
		}
		var tier []string
		for _, lane := range inner.Values {
			word, ok := yamlfile.Plain(lane)
			if !ok || word == "" {
				c.Complain(lane, "prefer has an entry that is not a lane", advice)
				continue
			}
			tier = append(tier, word)
		}
		tiers = append(tiers, tier)
	}
	return tiers
}
