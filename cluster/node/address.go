package node

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// homeParameter names the cluster's home in a join line: where the store is. It is in the line and
// not on the bus, so that there is nothing to be forgotten.
const homeParameter = "home"

// SplitHome takes the home out of a join line: what is left is the bus's own line.
func SplitHome(line string) (bus, home string, err error) {
	bus, query, found := strings.Cut(line, "?")
	if !found {
		return line, "", nil
	}
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != homeParameter {
			kept = append(kept, pair)
			continue
		}
		if home, err = url.QueryUnescape(value); err != nil {
			return "", "", fmt.Errorf("node: join line: %s: it is not escaped as in URLs", homeParameter)
		}
	}
	if len(kept) > 0 {
		bus += "?" + strings.Join(kept, "&")
	}
	return bus, home, nil
}

// HomeOf is a home as others may be told it: a folder by its whole path, as they are in other folders.
func HomeOf(address string) (string, error) {
	if address == "" || strings.Contains(address, "://") {
		return address, nil
	}
	return filepath.Abs(address)
}

// JoinLine is the line with which others join: the bus's own, and where the home is.
func JoinLine(bus, home string) string {
	if home == "" {
		return bus
	}
	separator := "?"
	if strings.Contains(bus, "?") {
		separator = "&"
	}
	return bus + separator + homeParameter + "=" + url.QueryEscape(home)
}
