package account

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider/auth"
)

// useNetwork reads the certificates of the flags. It refuses a wrong file, or a wrong proxy address, before
// any call.
func (b *Account) useNetwork() error {
	network := &b.flags.NetworkFlags
	if err := b.checkProxy(); err != nil {
		return err
	}
	if network.CaFile == "" && network.ClientCert == "" {
		return nil
	}
	b.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if network.CaFile != "" {
		pool, err := AuthoritiesIn(network.CaFile)
		if err != nil {
			return err
		}
		b.tls.RootCAs = pool
	}
	if network.ClientCert == "" {
		return nil
	}
	pair, err := clientPair(network)
	if err != nil {
		return err
	}
	b.tls.Certificates = []tls.Certificate{pair}
	if text := auth.Exposed(network.ClientKey); text != "" {
		b.Note(event.Key, text)
	}
	return nil
}

// maxPEM bounds a file of certificates, in bytes. The authorities of a system take some 250 KiB.
const maxPEM = 4 << 20

// readPEM reads the file of a flag, which must be regular and of a sensible size.
func readPEM(flag, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, exit.Refuse("--%s: %s: it is not a regular file: name a file in PEM form", flag, path)
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Refuse("--%s: %s: there is no such file: check its name", flag, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, exit.Refuse("--%s: %s: permission denied: check its permissions", flag, path)
	case err != nil:
		return nil, exit.Refuse("--%s: %s: %v: check the file", flag, path, disk.Bare(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	switch {
	case err != nil:
		return nil, exit.Refuse("--%s: %s: %v: check the file", flag, path, disk.Bare(err))
	case len(text) > maxPEM:
		return nil, exit.Refuse("--%s: %s: it has more than %d bytes: name a file in PEM form", flag, path, maxPEM)
	}
	return text, nil
}

const isPEM = "name a file in PEM form, which begins with -----BEGIN"

// AuthoritiesIn returns the system's authorities together with those in a file.
func AuthoritiesIn(path string) (*x509.CertPool, error) {
	rest, err := readPEM("ca-file", path)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without any
		pool = x509.NewCertPool()
	}
	found := 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		found++
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, exit.Refuse("--ca-file: %s: certificate %d is damaged: %v", path, found, err)
		}
		pool.AddCert(certificate)
	}
	switch {
	case bytes.Contains(rest, []byte("-----BEGIN ")):
		return nil, exit.Refuse("--ca-file: %s: certificate %d is damaged or cut off: copy the file again", path, found+1)
	case found == 0:
		return nil, exit.Refuse("--ca-file: %s: there is no certificate in it: %s", path, isPEM)
	}
	return pool, nil
}

// clientPair reads the client's certificate and its key. No error contains a part of the key.
func clientPair(network *settings.NetworkFlags) (pair tls.Certificate, err error) {
	certificate, err := readPEM("client-cert", network.ClientCert)
	if err != nil {
		return pair, err
	}
	key, err := readPEM("client-key", network.ClientKey)
	if err != nil {
		return pair, err
	}
	switch {
	case !bytes.Contains(certificate, []byte("-----BEGIN CERTIFICATE-----")):
		return pair, exit.Refuse("--client-cert: %s: there is no certificate in it: %s", network.ClientCert, isPEM)
	case bytes.Contains(key, []byte("ENCRYPTED")):
		return pair, exit.Refuse("--client-key: %s: the key is encrypted: decrypt it first, as in openssl pkey -in FILE -out NEWFILE", network.ClientKey)
	case !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return pair, exit.Refuse("--client-key: %s: there is no private key in it: %s", network.ClientKey, isPEM)
	}
	if pair, err = tls.X509KeyPair(certificate, key); err != nil {
		return pair, exit.Refuse("--client-cert and --client-key: %s and %s: %s", network.ClientCert, network.ClientKey, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return pair, nil
}

// proxySchemes lists the schemes of proxy addresses.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// checkProxy refuses a proxy address that net/http would silently ignore. The address may contain
// a password, so it is not repeated.
func (b *Account) checkProxy() error {
	variable := "HTTPS_PROXY"
	if u, err := url.Parse(b.flags.BaseURL); err == nil && u.Scheme == "http" {
		variable = "HTTP_PROXY"
	}
	for _, name := range []string{variable, strings.ToLower(variable)} {
		value, _ := b.Env(name)
		if value == "" {
			continue
		}
		if !isProxy(value) {
			return exit.Refuse("%s is not the address of a proxy: want http://[USER:PASSWORD@]HOST:PORT, with %% as %%25 in a password", name)
		}
		break // the first counts
	}
	return nil
}

// isProxy reports whether net/http takes a value for a proxy's address.
func isProxy(value string) bool {
	if !strings.Contains(value, "://") { // host:port alone
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && u.Hostname() != "" && slices.Contains(proxySchemes, u.Scheme)
}

// noteUnusedNetwork names the flags that have no meaning where nothing is sent.
func (b *Account) noteUnusedNetwork() {
	if unused := b.flags.SetOf(settings.Net); len(unused) > 0 {
		b.Note(event.Unused, fmt.Sprintf("%s: ignored with --provider sim", settings.Dashed(unused)))
	}
}
