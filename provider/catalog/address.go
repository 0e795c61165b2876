package catalog

import (
	"errors"
	"fmt"
	"strings"
)

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
	for of, base := range v.Bases {
		if of == at.Location || strings.HasSuffix(of, "-") && strings.HasPrefix(at.Region, of) {
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
