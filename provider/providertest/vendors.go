package providertest

import (
	"embed"
	"slices"
	"strings"
)

//go:embed testdata/vendors/*.http
var ofVendors embed.FS

// VendorCases returns the recordings that mean what they say only by the words of their vendor.
// The vendor's name begins theirs, such as xai_filtered. A client that does not know whom it
// calls reads them otherwise. They are in the order of their names.
func VendorCases() []Case { return casesIn(ofVendors, "testdata/vendors") }

// Vendor returns the name with which the recording's begins: for most the vendor that answered.
func (c Case) Vendor() string {
	name, _, _ := strings.Cut(c.Name, "_")
	return name
}

// Of reports whether the recording is an answer of the vendor of that name.
func (c Case) Of(name string) bool { return c.Vendor() == name || slices.Contains(c.Also, name) }
