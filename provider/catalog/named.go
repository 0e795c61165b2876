package catalog

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Names of vendors that stand for unknown ones.
const (
	generic = "generic" // somebody's server
	local   = "local"   // one's own
	usual   = "openai"  // the one that is called if there is no address
)

// Rows returns all vendors, in the order of the page that shows them: makers of models, hosts
// of other makers' models, and servers of one's own. The slice is the caller's.
func Rows() []Vendor { return slices.Concat(makers, hosts, own) }

// Names returns the names of all vendors, in order.
func Names() []string {
	var names []string
	for _, v := range Rows() {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// Named returns the vendor of that name, in capitals or not; false if there is none.
func Named(name string) (Vendor, bool) {
	name = strings.ToLower(name)
	for _, rows := range [...][]Vendor{makers, hosts, own} {
		for i := range rows {
			if rows[i].Name == name {
				return rows[i], true
			}
		}
	}
	return Vendor{}, false
}

// ended lists vendors that answer no longer, by their names.
var ended = map[string]struct {
	hosts []string
	why   string // half a sentence
}{
	"github-models": {[]string{"models.github.ai", "models.inference.ai.azure.com"}, "GitHub retired GitHub Models on 30 July 2026"}, // github.com/orgs/community/discussions/203602
}

// Ended says why a vendor answers no longer. The vendor is given by its name, in capitals or not,
// or by the host of its address; "" if neither belongs to one that has ended.
func Ended(name, baseURL string) (why string) {
	if e, gone := ended[strings.ToLower(name)]; gone {
		return e.why
	}
	host, _ := hostOf(baseURL)
	for _, e := range ended {
		if slices.ContainsFunc(e.hosts, func(of string) bool { return isHost(host, of) }) {
			return e.why
		}
	}
	return ""
}

// For returns the vendor of that name. For an unknown name ("", "auto") the base URL decides: a
// known host is its vendor's, and no URL at all is openai. A loopback or private address and a
// host without a dot are local. Anything else is generic. The result says who answers, and not
// in which dialect: many hosts have a second door.
func For(name, baseURL string) Vendor {
	if v, ok := Named(name); ok {
		return v
	}
	v, _ := Named(nameByURL(baseURL))
	return v
}

// nameByURL returns the name of the vendor at a base URL, and usual if there is no URL. A host that
// no vendor has is local if it is private, else generic.
func nameByURL(base string) string {
	if base == "" {
		return usual
	}
	host, _ := hostOf(base)
	if name := nameByHost(host); name != "" {
		return name
	}
	if isPrivate(host) {
		return local
	}
	return generic
}

// hostOf returns the host of a URL in small letters; false if it is not a URL.
func hostOf(base string) (host string, ok bool) {
	u, err := url.Parse(base)
	if err != nil {
		return "", false
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), true
}

// nameByHost returns the name of the vendor at a host, "" if no vendor is there.
func nameByHost(host string) string {
	for _, rows := range [...][]Vendor{makers, hosts} {
		for i := range rows {
			if slices.ContainsFunc(rows[i].Hosts, func(of string) bool { return isHost(host, of) }) {
				return rows[i].Name
			}
		}
	}
	return ""
}

// Answers reports whether a URL's host is the vendor's own: one of its Hosts, that of its
// address in any place, or one of another door that takes the same keys. A server of one's own
// has none.
func (v Vendor) Answers(baseURL string) bool {
	host, ok := hostOf(baseURL)
	if !ok || v.Local {
		return false
	}
	matches := func(of string) bool { return isHost(host, of) }
	return slices.ContainsFunc(v.Hosts, matches) || slices.ContainsFunc(v.hostsOfBases(), matches) || v.sharesKey(nameByHost(host))
}

// sharesKey reports whether the vendor of that name looks for its key in all variables in which
// v does: any of v's keys may be sent there.
func (v Vendor) sharesKey(name string) bool {
	other, _ := Named(name)
	isElsewhere := func(key string) bool { return !slices.Contains(other.Keys, key) }
	return len(v.Keys) > 0 && !slices.ContainsFunc(v.Keys, isElsewhere)
}

// placeholder is a part of a host that is filled in.
var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// filledIn gives the form of each placeholder's value. A bucket may have any name that is free on
// its maker's domain: bedrock-runtime.s3.amazonaws.com is somebody's bucket.
var filledIn = map[string]*regexp.Regexp{
	"{region}":   regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+){1,2}-[0-9]{1,2}$`), // eu-west-1, us-gov-west-1
	"{location}": regexp.MustCompile(`^[a-z]+(-[a-z]+[0-9]{1,2})?$`),          // europe-west4, eu
	"{resource}": regexp.MustCompile(`^[a-z0-9_-]+$`),
}

// hostsOfBases returns the hosts of Base and Bases in the form of Hosts; none if there is no Base.
func (v Vendor) hostsOfBases() (hosts []string) {
	for _, base := range slices.AppendSeq([]string{v.Base}, maps.Values(v.Bases)) {
		_, rest, _ := strings.Cut(base, "://")
		if host, _, _ := strings.Cut(rest, "/"); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// isHost reports whether a host matches the pattern of a row. A plain name also matches the hosts
// below it; a pattern with a placeholder matches if a valid part stands in its place.
func isHost(host, pattern string) bool {
	placeholderMark := placeholder.FindString(pattern)
	if placeholderMark == "" {
		return host == pattern || strings.HasSuffix(host, "."+pattern)
	}
	head, tail, _ := strings.Cut(pattern, placeholderMark)
	part, begins := strings.CutPrefix(host, head)
	part, ends := strings.CutSuffix(part, tail)
	return begins && ends && filledIn[placeholderMark].MatchString(part)
}

// isPrivate reports whether a host can only be one's own: an address or a name that is not
// public.
func isPrivate(host string) bool {
	if host == "" {
		return false
	}
	host, _, _ = strings.Cut(host, "%") // the zone of an IPv6 address
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	if !strings.Contains(host, ".") { // localhost, and services of a compose file
		return true
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// Place says where a vendor with many places is called. Only the parts that Needs names are
// used.
type Place struct {
	Region   string // of AWS, such as eu-west-1
	Project  string // of Google Cloud, which may be of a domain, as in example.com:my-project
	Location string // of Google Cloud: a region, "global", "us" or "eu"
	Resource string // of Azure
}

// parts lists the parts of a Place, by the names of placeholders, in their order.
var parts = [...]struct {
	name      string
	variables []string // the usual ones of the environment
	of        func(Place) string
}{
	{"region", []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, func(p Place) string { return p.Region }},
	{"project", []string{"GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT"}, func(p Place) string { return p.Project }},
	{"location", []string{"GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION"}, func(p Place) string { return p.Location }},
	{"resource", []string{"AZURE_RESOURCE_NAME"}, func(p Place) string { return p.Resource }},
}

// maxPart bounds a part in bytes: as long as a label of a host's name may be.
const maxPart = 63

var (
	// ErrNoAddress is for a vendor without a Base, which is reached only at a given address.
	ErrNoAddress = errors.New("it has no address of its own: set the base URL")
	// ErrUnknown is for a name that no vendor has.
	ErrUnknown = errors.New("it is not known: use one of Names")
	// ErrPart is for a Place that lacks a part of the address, or has a part that no address may have.
	ErrPart = errors.New("not a part of an address")
)

// A PartError names the wrong part of a Place: errors.As finds it where errors.Is finds
// ErrPart.
type PartError struct {
	Part  string // as Needs names it
	Value string // as it was given
}

func (e *PartError) Error() string { return fmt.Sprintf("its %s %q: %v", e.Part, e.Value, ErrPart) }

// Unwrap returns ErrPart.
func (e *PartError) Unwrap() error { return ErrPart }

// Variables returns the environment variables in which a part of a Place usually is. The part
// is given by the name of its placeholder; the first variable that is set counts.
func Variables(part string) []string {
	for _, p := range parts {
		if p.name == part {
			return p.variables
		}
	}
	return nil
}

// Variables returns the environment variables in which a part of the vendor's place may be; the
// first that is set counts.
func (v Vendor) Variables(part string) []string {
	if own, has := v.Places[part]; has {
		return own
	}
	return Variables(part)
}

// Needs names the parts of a Place that the vendor's address needs: none, or some of region,
// project, location and resource.
func (v Vendor) Needs() (names []string) {
	for _, p := range parts {
		if strings.Contains(v.Base, "{"+p.name+"}") {
			names = append(names, p.name)
		}
	}
	return names
}

// Address returns the base URL with the place filled in. errors.Is finds ErrNoAddress or ErrPart
// in what it returns.
func (v Vendor) Address(at Place) (string, error) {
	base := v.baseAt(at)
	if base == "" {
		return "", fmt.Errorf("catalog: address of %s: %w", v.Name, ErrNoAddress)
	}
	for _, p := range parts {
		mark := "{" + p.name + "}"
		if !strings.Contains(base, mark) {
			continue
		}
		value := p.of(at)
		if !isPart(value) && !(p.name == "project" && isScoped(value)) {
			return "", fmt.Errorf("catalog: address of %s: %w", v.Name, &PartError{Part: p.name, Value: value})
		}
		base = strings.ReplaceAll(base, mark, value)
	}
	return base, nil
}

// baseAt returns the base of a place, before it is filled in.
func (v Vendor) baseAt(at Place) string {
	for location, base := range v.Bases {
		if location == at.Location || strings.HasSuffix(location, "-") && strings.HasPrefix(at.Region, location) {
			return base
		}
	}
	return v.Base
}

// isPart reports whether a text may be filled into an address. It must not turn that into
// another address: the text comes from the environment, and stands in the name of a host that
// gets a key.
func isPart(s string) bool {
	if s == "" || len(s) > maxPart {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// isScoped reports whether a text is a project of a domain, as in example.com:my-project. A
// project stands in a path, never in the name of a host.
func isScoped(s string) bool {
	domain, project, _ := strings.Cut(s, ":")
	for label := range strings.SplitSeq(domain, ".") {
		if !isPart(label) {
			return false
		}
	}
	return isPart(project)
}
