package providertest

import (
	"embed"
	"slices"
	"strings"
)

//go:embed testdata/vendors/*.http
var ofVendors embed.FS

// VendorCases returns the recordings that mean what they say they do only by the words of
// the vendor whose name theirs begins with, such as xai_filtered: whoever does not know
// whom it calls reads them otherwise. They are in the order of their names.
func VendorCases() []Case { return casesIn(ofVendors, "testdata/vendors") }

// Vendor is the name that the recording's begins with: for most that of whose answer it is.
func (c Case) Vendor() string {
	name, _, _ := strings.Cut(c.Name, "_")
	return name
}

// Of reports whether the recording is an answer of the vendor of that name.
func (c Case) Of(name string) bool { return c.Vendor() == name || slices.Contains(c.Also, name) }
