package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/disk"
)

// certificateLife is the validity of certificates. They serve one cluster, and a certificate that expires
// in the middle of a job helps nobody.
const certificateLife = 20 * 365 * 24 * time.Hour

// clockSlack bounds how far a worker's clock may be behind that of the machine that made the certificate.
const clockSlack = 48 * time.Hour

// An authority signs the certificates of one cluster's hubs, and of nothing else. A holder of such a
// certificate is therefore a hub, whatever host it is on: clients do not compare hosts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// MakeAuthority writes ca.pem and ca.key to a folder, for hubs that share them, unless they are
// there. It returns the fingerprint for join lines.
func MakeAuthority(dir string, now time.Time) (fingerprint string, err error) {
	ca, err := loadAuthority(dir, now)
	if err != nil {
		return "", fmt.Errorf("bus: %w", err)
	}
	return ca.fingerprint(), nil
}

// loadAuthority reads the authority of a folder, or makes it.
func loadAuthority(dir string, now time.Time) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	certPEM, err := os.ReadFile(certPath)
	if errors.Is(err, os.ErrNotExist) {
		return makeAuthority(certPath, keyPath, now)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	ca, err := parseAuthority(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return ca, nil
}

func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("ca.pem and ca.key are not a certificate authority with an ECDSA key")
	}
	return &authority{cert: pair.Leaf, key: key}, nil
}

// makeAuthority makes an authority and writes its two files, the key first. A crash in between leaves a key
// alone, which the next start replaces. It would refuse a certificate alone.
func makeAuthority(certPath, keyPath string, now time.Time) (*authority, error) {
	if err := os.MkdirAll(filepath.Dir(certPath), 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("headrace", now)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := writePEM(keyPath, "PRIVATE KEY", keyDER, 0o600); err != nil {
		return nil, err
	}
	if err := writePEM(certPath, "CERTIFICATE", der, 0o644); err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return disk.Real().Write(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func certificateTemplate(name string, now time.Time) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // it never fails
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(certificateLife),
	}
}

func (a *authority) fingerprint() string { return fingerprint(a.cert) }

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// sign makes the certificate of one life of a hub. Its key never leaves the process.
func (a *authority) sign(name string, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := certificateTemplate(name, now)
	template.NotAfter = a.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{name}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	// The chain includes the authority's own certificate, because the worker knows only its fingerprint.
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, nil
}

func (a *authority) serverConfig(name string, now time.Time) (*tls.Config, error) {
	cert, err := a.sign(name, now)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}, err
}

// routeConfig returns the settings of both ends of a route between hubs: each must show a certificate of the same authority.
func (a *authority) routeConfig(name string, now time.Time) (*tls.Config, error) {
	config, err := a.serverConfig(name, now)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool
	config.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does it, without the host's name
	config.VerifyConnection = pinned(a.fingerprint())
	return config, err
}

// clientTLS returns a client's TLS settings: with a pinned authority, or else as in any browser.
func clientTLS(fingerprint string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if fingerprint != "" {
		config.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does it, against the pin
		config.VerifyConnection = pinned(fingerprint)
	}
	return config
}

// ErrNotTheHub is the kind of error of a server whose certificate does not come from the authority in the join line.
var ErrNotTheHub = errors.New("the server's certificate is not of the authority that the join line names")

// pinned accepts a connection whose certificate has the fingerprint, or is signed by a certificate in the chain that has it.
func pinned(want string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		chain := state.PeerCertificates
		for i, cert := range chain {
			if !strings.EqualFold(fingerprint(cert), want) {
				continue
			}
			if i == 0 {
				return nil
			}
			return signedBy(cert, chain[0])
		}
		return ErrNotTheHub
	}
}

func signedBy(root, leaf *x509.Certificate) error {
	pool := x509.NewCertPool()
	pool.AddCert(root)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotTheHub, err)
	}
	return nil
}
