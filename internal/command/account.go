package command

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

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
func (c *Calls) Limit(model string) string {
	b := c.s.r.backend
	return b.lane(model) + accountOf(c.s.r.flags.elsewhere(), strings.Join(append([]string{b.key()}, b.told...), "\x00"))
}

// elsewhere returns the called address if it is not a vendor's public one; "" if it is.
func (f *whomFlags) elsewhere() string {
	if f.provider == providerSim || f.baseURL == f.vendor.Base || f.provider == providerOpenAI && isOpenAI(f.baseURL) {
		return ""
	}
	return f.baseURL
}

// accountOf returns the part of a limit's name that follows the lane.
func accountOf(address, key string) (text string) {
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

// staticKey returns the key that a source sends, if that is the same for days and on each machine; ""
// otherwise.
func staticKey(source auth.Source) string {
	switch source.(type) {
	case *auth.Key, *auth.File:
		if keys := source.Secrets(); len(keys) > 0 { // placeholders are not among them
			return keys[0]
		}
	}
	return ""
}
