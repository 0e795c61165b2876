package account

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider/auth"
)

// accountDigits is the number of hexadecimal digits that tell accounts apart. Among a hundred accounts in one cluster two
// get the same digits once in 3,000 times. These two then share one limit, which is slow and never too fast. So few digits
// reveal nothing about a key.
const accountDigits = 6

// Limit names the quota that a call of a model draws on, among those of many machines:
//
//	openai/gpt-4o-mini#3f9a1c          provider, model, account
//	openai/llama@10.0.0.5:8000         a server of somebody else's, without a key
//
// It is the lane of a run, with the address where that is not the provider's own, and with a
// hash. The hash covers the path of the address (it may name a project), the key, and the
// organisation in the headers: these tell accounts apart. Fetched tokens and signatures are
// left out, as they differ on each machine. So are words that stand for no key, such as "none".
func (b *Account) Limit(model string) string {
	return b.Lane(model) + limitSuffix(b.flags.CustomAddress(), strings.Join(append([]string{b.key()}, b.accountHeaders...), "\x00"))
}

// LimitOn returns what [Account.Limit] returns, on a lane of the file, for the lane's own word for a model. A
// quota names its limit itself. If an earlier lane draws on the same limit, the lane's name tells the two
// apart, as in a run.
func (b *Account) LimitOn(spec *settings.LaneSpec, word string) string {
	if spec.Quota != "" {
		return spec.Quota
	}
	limit := b.LaneNamed(spec.Name).Limit(word)
	if spec.Base != "" { // of the two that service-tier: auto makes, refusals of the flex tier must not hold back the other
		return settings.FlexLane(b.LimitOn(b.LaneNamed(spec.Base).Spec, word))
	}
	for _, lane := range b.Lanes {
		switch {
		case lane.Spec.Base != "":
		case lane.Spec == spec:
			return limit
		case lane.Spec.Quota == "" && lane.Spec.Calls(word) && lane.Limit(word) == limit:
			return limit + "/" + spec.Name
		}
	}
	return limit
}

// AccountOf names the account of a lane of the file, among those of many machines, by its keys. It is "" if
// the lane has neither a named account nor a key.
func (b *Account) AccountOf(spec *settings.LaneSpec) string {
	var keys []string
	for _, lane := range b.Lanes {
		if key := lane.key(); key != "" && lane.Spec.Fate == spec.Fate {
			keys = append(keys, key)
		}
	}
	if spec.Account == "" && len(keys) == 0 {
		return ""
	}
	slices.Sort(keys)
	return spec.Account + limitSuffix("", strings.Join(slices.Compact(keys), "\x00"))
}

// limitSuffix returns the part of a limit's name that follows the lane: the address and a hash of the key.
func limitSuffix(address, key string) (text string) {
	path := ""
	if u, err := url.Parse(strings.TrimSpace(address)); err == nil && u.Host != "" {
		text, path = "@"+u.Host, strings.Trim(u.Path, "/")
	}
	if key == "" && (path == "" || path == "v1") {
		return text
	}
	sum := sha256.Sum256([]byte(path + "\x00" + key))
	return text + "#" + hex.EncodeToString(sum[:])[:accountDigits]
}

// staticKey returns the key of a source, if it stays the same for days and on each machine; "" otherwise.
func staticKey(source auth.Source) string {
	switch source.(type) {
	case *auth.Key, *auth.File:
		if keys := source.Secrets(); len(keys) > 0 { // placeholders are not among them
			return keys[0]
		}
	}
	return ""
}

// ServerOf returns the name of the called server, for people, and a print of the whole
// address, the key and the organisation. The print tells another server apart.
//
// The print is one byte. In any list of keys to try, one in 256 has the same print, so it
// confirms no guess. A foreign state passes for one's own as seldom. It is then a false
// belief about limits, which a run corrects.
func (b *Account) ServerOf() (server, mark string) {
	switch {
	case b.Lanes != nil:
		return "the lanes of a file", b.printOfLanes()
	case b.Books != nil:
		return settings.ProviderSim + " " + b.flags.SimProfile, ""
	}
	base := strings.TrimRight(b.flags.BaseURL, "/")
	server = b.Name
	if address, err := url.Parse(base); err == nil && address.Host != "" && !settings.IsOpenAI(base) {
		server += " at " + address.Scheme + "://" + address.Host
	}
	sum := sha256.Sum256([]byte("headrace state\n" + base + "\n" + b.Identity()))
	return server, hex.EncodeToString(sum[:1])
}

// printOfLanes returns a print of all lanes. It does not depend on their order in the file.
func (b *Account) printOfLanes() string {
	var lines []string
	for _, lane := range b.Lanes {
		lines = append(lines, lane.Spec.Name+"\n"+lane.flags.BaseURL+"\n"+lane.Identity())
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte("headrace lanes\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:1])
}

// Identity returns a text that tells this account from others, as far as that is possible without a call.
func (b *Account) Identity() string {
	known := []string{b.Proven}
	if key, isKey := b.proof.(*auth.Key); isKey {
		known = key.Secrets()
	}
	for _, source := range b.added {
		if key, isKey := source.(*auth.Key); isKey {
			known = slices.Concat(known, key.Secrets())
		}
	}
	return strings.Join(slices.Concat(known, b.accountHeaders), "\n")
}
