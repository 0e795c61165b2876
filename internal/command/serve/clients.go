package serve

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/yamlfile"
	"github.com/headrace/headrace/limiter"
)

// fileOfClients is the form of the file of --clients.
var fileOfClients = yamlfile.Form{
	Flag: "--clients", Is: "a YAML file of clients", Entry: "clients and their words",
	Write: `write "clients:", below it a name, and below that its words, as in "token-sha256: …"`,
}

// mostClients bounds the clients of a file. Programs of a company have hundreds; more are a slip of
// the program that wrote the file.
const mostClients = 4096

// clientWords are the words of a client, in the order of the documentation.
var clientWords = []string{"token-sha256", "weight", "max-priority", "max-waiting", "max-in-flight", "max-cost-per-day", "max-cost-per-run", "models", "may-name", "admin"}

// readClients reads the file of --clients.
func readClients(path string) (all []door.Client, err error) {
	file, err := fileOfClients.Read(path)
	if err != nil {
		return nil, err
	}
	f := &clientsFile{File: file, tokens: map[[32]byte]string{}}
	found := false
	for _, one := range f.Entries() {
		if name := one.Key.GetToken().Value; name != "clients" {
			f.Complain(one.Key, fmt.Sprintf("unknown word %q", clippedText(name)), fileOfClients.Write)
			continue
		}
		found = true
		all = f.readSection(one)
	}
	if !found && len(f.Faults) == 0 {
		f.Complain(nil, "there are no clients", fileOfClients.Write)
	}
	if len(f.Faults) > 0 {
		return nil, settings.Usage(f.Faults[0]) // one is enough: the next may follow from it
	}
	return all, nil
}

// clientsFile is a file of clients while it is read.
type clientsFile struct {
	*yamlfile.File
	tokens map[[32]byte]string // the client of each
}

// readSection reads the clients under the word clients.
func (f *clientsFile) readSection(s *ast.MappingValueNode) (all []door.Client) {
	body := yamlfile.Section(s)
	switch {
	case len(body) == 0:
		f.Complain(s.Key, "clients is not a map of names", fileOfClients.Write)
	case len(body) > mostClients:
		f.Complain(s.Key, fmt.Sprintf("%d clients are too many", len(body)), fmt.Sprintf("a file may have up to %d", mostClients))
		return nil
	}
	for _, one := range body {
		name := one.Key.GetToken().Value
		if exit.WithoutKeys(name) != name || !door.IsName(name) {
			f.Complain(one.Key, fmt.Sprintf("%q is not a name of a client", clippedText(name)), "use letters, digits, dots, - and _, up to "+strconv.Itoa(door.MaxName)+" of them")
			continue
		}
		if slices.ContainsFunc(all, func(c door.Client) bool { return c.Name == name }) {
			f.Complain(one.Key, fmt.Sprintf("client %s is there twice", name), "keep one")
			continue
		}
		all = append(all, f.readClient(name, one))
	}
	return all
}

// readClient reads the words of one client. It refuses a client without a token, or with that of another.
func (f *clientsFile) readClient(name string, s *ast.MappingValueNode) door.Client {
	c := door.Client{Name: name, Weight: 1}
	for _, one := range yamlfile.Section(s) {
		f.readWord(&c, one)
	}
	switch owner, taken := f.tokens[c.SHA256]; {
	case c.SHA256 == [32]byte{} && len(f.Faults) == 0:
		f.Complain(s.Key, fmt.Sprintf("client %s has no token", name), "write its token-sha256, which headrace serve token makes")
	case taken:
		f.Complain(s.Key, fmt.Sprintf("client %s has the token of client %s", name, owner), "give each a token of its own")
	}
	f.tokens[c.SHA256] = name
	return c
}

// readWord reads one word of a client, and complains if it is unknown or its value invalid.
func (f *clientsFile) readWord(c *door.Client, s *ast.MappingValueNode) {
	name := s.Key.GetToken().Value
	if name == "models" {
		c.Models = f.List(s, "models")
		return
	}
	if !slices.Contains(clientWords, name) {
		advice := settings.DidYouMean(settings.Nearest(name, clientWords)) + "there are " + strings.Join(clientWords, ", ")
		if name == "token" || settings.IsKeyFlag(name) {
			advice = "no token belongs in this file: write the token-sha256, which headrace serve token makes"
		}
		f.Complain(s.Key, fmt.Sprintf("client %s: unknown word %q", c.Name, clippedText(name)), advice)
		return
	}
	value, ok := yamlfile.Plain(s.Value)
	if !ok || value == "" {
		f.Complain(s.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	if wants := setWord(c, name, value); wants != "" {
		f.Complain(s.Key, fmt.Sprintf("client %s: %s: %q is invalid", c.Name, name, clippedText(value)), wants)
	}
}

// Bounds of a client's words: a slip is beyond them.
const (
	mostWeight = 1000
	mostPlaces = 1_000_000
	mostDollar = 1e6
)

// setWord sets a word of a client to a value. For an invalid value it returns what is wanted.
func setWord(c *door.Client, name, value string) (wants string) {
	switch name {
	case "token-sha256":
		return setToken(c, value)
	case "weight":
		return setWhole(value, 1, mostWeight, &c.Weight)
	case "max-waiting":
		return setWhole(value, 1, mostPlaces, &c.MaxWaiting)
	case "max-in-flight":
		return setWhole(value, 1, mostPlaces, &c.MaxInFlight)
	case "max-cost-per-day":
		return setDollars(value, &c.MaxCostDay)
	case "max-cost-per-run":
		return setDollars(value, &c.MaxCostRun)
	case "max-priority":
		var known bool
		if c.First, known = door.ClassOf(value); !known {
			return "use " + strings.Join(door.Classes[:], ", ")
		}
	case "may-name":
		return setBool(value, &c.MayName)
	case "admin":
		return setBool(value, &c.Admin)
	}
	return ""
}

// setToken reads the hash of a token, as sha256sum and headrace serve token write it, or returns what is wanted.
func setToken(c *door.Client, value string) (wants string) {
	sum, err := hex.DecodeString(value)
	if err != nil || len(sum) != len(c.SHA256) {
		return "write the 64 hexadecimal digits that headrace serve token prints"
	}
	c.SHA256 = [32]byte(sum)
	return ""
}

// setWhole reads a whole number within bounds, or returns what is wanted.
func setWhole(value string, least, most int, to *int) (wants string) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return fmt.Sprintf("it may be a whole number from %d to %d", least, most)
	}
	*to = n
	return ""
}

// setDollars reads a sum in USD, or returns what is wanted.
func setDollars(value string, to *limiter.Money) (wants string) {
	usd, err := strconv.ParseFloat(value, 64)
	if err != nil || !(usd > 0 && usd <= mostDollar) { // NaN too
		return "it may be a sum in USD, as in 2.50"
	}
	*to = limiter.USD(usd)
	return ""
}

// setBool reads true or false, or returns what is wanted.
func setBool(value string, to *bool) (wants string) {
	if value != "true" && value != "false" {
		return "it may be true or false"
	}
	*to = value == "true"
	return ""
}

// clippedText clips a text of the file, and hides what may be a key: a token of ours is one.
func clippedText(text string) string { return yamlfile.Clipped(exit.WithoutKeys(text)) }
