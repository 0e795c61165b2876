package bus

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// An Address holds the parts of a join line:
//
//	nats://TOKEN@host:4222[,host:4222…][?ca=sha256:…][&space=…]
//	nats://USER:PASSWORD@host:4222, tls://…   servers of somebody else
//	tls://host:4222?creds=FILE, ?nkey=FILE, ?cert=FILE&key=FILE, ?ca=FILE
type Address struct {
	Hosts          []string // host:port; the port may be missing: 4222
	Token          string   // or
	User, Password string
	CA             string // fingerprint of the authority whose certificates are let in, or its file; "": the machine's own
	Files
	TLS   bool   // asked for by tls://, or because there is a CA
	Space string // prefix of all subjects and streams; "": [DefaultSpace]
}

// DefaultSpace is the prefix of all subjects and streams. Two clusters on one NATS server need different ones.
const DefaultSpace = "hr"

const defaultPort = "4222"

// ErrAddress is the kind of error of a line that cannot be read. The error never quotes the line, which may hold a secret.
var ErrAddress = errors.New("no join line: want nats://TOKEN@host:4222")

// ParseAddress reads a join line.
func ParseAddress(line string) (Address, error) {
	scheme, rest, ok := strings.Cut(line, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return Address{}, fmt.Errorf("bus: %w", ErrAddress)
	}
	rest, query, _ := strings.Cut(rest, "?")
	rest = strings.TrimSuffix(rest, "/")
	a := Address{TLS: scheme == "tls"}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := a.parseUser(rest[:at]); err != nil {
			return Address{}, fmt.Errorf("bus: %w", err)
		}
		rest = rest[at+1:]
	}
	if err := a.parseHosts(rest); err != nil {
		return Address{}, fmt.Errorf("bus: %w", err)
	}
	if err := a.parseQuery(query); err != nil {
		return Address{}, fmt.Errorf("bus: %w", err)
	}
	return a, nil
}

// parseUser reads the part of a line before the @: USER:PASSWORD, or a token alone. It undoes
// %-escapes, so a secret may have any byte in it.
func (a *Address) parseUser(text string) error {
	user, password, hasPassword := strings.Cut(text, ":")
	user, err1 := url.PathUnescape(user)
	password, err2 := url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return ErrAddress
	}
	if hasPassword {
		a.User, a.Password = user, password
		return nil
	}
	a.Token = user
	return nil
}

// parseHosts reads the hosts, and adds the default port where none is given. An IPv6 address
// without a port needs no brackets.
func (a *Address) parseHosts(text string) error {
	for _, host := range strings.Split(text, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		name, port, err := splitAddress(host)
		if err != nil || name == "" || port == 0 {
			return ErrAddress
		}
		a.Hosts = append(a.Hosts, host)
	}
	return nil
}

// parseQuery reads the parameters of a line. It refuses an unknown one, because a nats:// line
// whose ca is misspelt would go without TLS.
func (a *Address) parseQuery(text string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return ErrAddress
	}
	for key, values := range query {
		switch value := values[0]; {
		case key == "ca":
			digits, pinned := strings.CutPrefix(value, fingerprintBegins)
			if _, err := hex.DecodeString(digits); pinned && (err != nil || len(digits) != 64) || !pinned && !strings.Contains(value, "/") {
				return errors.New("no fingerprint: want ca=sha256: and 64 hexadecimal digits, or ca= and the path of a file")
			}
			a.CA, a.TLS = value, true
		case key == "space":
			a.Space = value
		case !a.setParameter(key, value):
			return fmt.Errorf("unknown %q in the join line: want ca, space, creds, nkey, cert or key", key)
		}
	}
	a.TLS = a.TLS || a.Cert != ""
	return nil
}

// String returns the line itself, including its secrets.
func (a Address) String() string {
	return a.format(url.PathEscape(a.Token), url.PathEscape(a.Password))
}

// Redacted returns the line without its secrets, for people.
func (a Address) Redacted() string { return a.format("***", "***") }

// format writes the line again, with the given words in place of token and password. It writes
// tls:// only where no ca= says that there is TLS.
func (a Address) format(token, password string) string {
	var b strings.Builder
	b.WriteString("nats://")
	if a.TLS && a.CA == "" {
		b.Reset()
		b.WriteString("tls://")
	}
	switch {
	case a.Token != "":
		b.WriteString(token + "@")
	case a.User != "":
		b.WriteString(url.PathEscape(a.User) + ":" + password + "@")
	}
	b.WriteString(strings.Join(a.Hosts, ","))
	query := a.queryParameters()
	if isFingerprint(a.CA) {
		query = append(query, "ca="+a.CA)
	} else if a.CA != "" {
		query = append(query, "ca="+url.QueryEscape(a.CA))
	}
	if a.Space != "" {
		query = append(query, "space="+url.QueryEscape(a.Space))
	}
	if len(query) > 0 {
		b.WriteString("?" + strings.Join(query, "&"))
	}
	return b.String()
}

// HostsOf returns the hosts of a line, and nothing else of it.
func HostsOf(line string) string {
	a, err := ParseAddress(strings.Split(line, "?")[0])
	if err != nil {
		return "an address that cannot be read"
	}
	return strings.Join(a.Hosts, ", ")
}

// Files name the credentials that a process shows to servers of somebody else, by their paths on its machine. No line holds
// their contents.
type Files struct {
	Creds     string // of a user: a token and the key that signs for it
	NKey      string // the seed of a key whose public part the server knows
	Cert, Key string // a certificate that the server asks for, and its key
}

// setParameter stores a value of a join line. It returns false for any other name.
func (f *Files) setParameter(name, value string) bool {
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

// queryParameters returns the files as parameters of a join line.
func (f *Files) queryParameters() (all []string) {
	for _, one := range []struct{ name, value string }{{"creds", f.Creds}, {"nkey", f.NKey}, {"cert", f.Cert}, {"key", f.Key}} {
		if one.value != "" {
			all = append(all, one.name+"="+url.QueryEscape(one.value))
		}
	}
	return all
}

// clientOptions returns the client options that show these credentials.
func (f *Files) clientOptions() (all []nats.Option, err error) {
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
