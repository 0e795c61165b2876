package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// Files name the credentials that a process shows to servers of somebody else, by their paths on its machine. No line holds
// their contents.
type Files struct {
	Creds     string // of a user: a token and the key that signs for it
	NKey      string // the seed of a key whose public part the server knows
	Cert, Key string // a certificate that the server asks for, and its key
}

// set stores a value of a join line. It returns false for any other name.
func (f *Files) set(name, value string) bool {
	switch name {
	case "creds":
		f.Creds = value
	case "nkey":
		f.NKey = value
	case "cert":
		f.Cert = value
	case "key":
		f.Key = value
	default:
		return false
	}
	return true
}

// query returns the files as parameters of a join line.
func (f *Files) query() (all []string) {
	for _, one := range []struct{ name, value string }{{"creds", f.Creds}, {"nkey", f.NKey}, {"cert", f.Cert}, {"key", f.Key}} {
		if one.value != "" {
			all = append(all, one.name+"="+url.QueryEscape(one.value))
		}
	}
	return all
}

// options returns the client options that show these credentials.
func (f *Files) options() (all []nats.Option, err error) {
	if f.Creds != "" {
		if _, err := os.Stat(f.Creds); err != nil {
			return nil, fmt.Errorf("creds: %w", err)
		}
		all = append(all, nats.UserCredentials(f.Creds))
	}
	if f.NKey != "" {
		option, err := nats.NkeyOptionFromSeed(f.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey %s: %w", f.NKey, err)
		}
		all = append(all, option)
	}
	return all, nil
}

// tlsConfig returns the client's TLS settings for the address; nil without TLS. The authority is a fingerprint or a file.
func (a *Address) tlsConfig() (*tls.Config, error) {
	if !a.TLS {
		return nil, nil
	}
	pin := a.CA
	if !isFingerprint(pin) {
		pin = ""
	}
	config := clientTLS(pin)
	if a.CA != "" && pin == "" {
		text, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca %s: it has no certificate in PEM", a.CA)
		}
	}
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("cert and key go together")
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("cert %s: %w", a.Cert, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

const fingerprintBegins = "sha256:"

func isFingerprint(ca string) bool { return strings.HasPrefix(ca, fingerprintBegins) }
