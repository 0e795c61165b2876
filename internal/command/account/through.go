package account

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// TokenPath returns the file in which headrace serve keeps the token of an address, HOST:PORT or the whole
// path of a socket. A run of the same user finds it there.
func TokenPath(runtime, address string) string {
	name := strings.NewReplacer("localhost", "127.0.0.1", ":", "_", "[", "", "]", "", "%", "_").Replace(address)
	if filepath.IsAbs(address) {
		sum := sha256.Sum256([]byte(address))
		name = hex.EncodeToString(sum[:6])
	}
	return filepath.Join(runtime, "token-"+name)
}

// helloWait bounds the greeting of a server on this machine.
const helloWait = 5 * time.Second

// throughWait is the wait that a run asks for: batch calls have time, and their run has a bound of its own.
const throughWait = "24h"

// goThrough makes the client of a run whose calls headrace serve paces. The server has the provider's key,
// and the run has the server's token.
func (b *Account) goThrough() error {
	base, tokenName, transport, err := b.transportTo(b.flags.Through)
	if err != nil {
		return err
	}
	token, err := b.tokenFor(tokenName)
	if err != nil {
		return err
	}
	cfg := b.ClientConfig()
	b.added, b.addedFrom = nil, nil // they are for the provider
	if cfg.Auth = (auth.None{}); token != "" {
		if b.proof, err = auth.Bearer(token); err != nil {
			return exit.Refuse("--through: the token of headrace serve has a character that headers cannot have")
		}
		cfg.Auth = b.proof
	}
	if err := b.checkServe(base, transport, cfg.Auth); err != nil {
		return err
	}
	cfg.BaseURL, cfg.Path, cfg.StreamPath, cfg.InBody, cfg.TLS, cfg.Transport = base, "", "", "", nil, &serveTransport{transport, b.flags.Through}
	cfg.Header = http.Header{}
	if own, has := b.flags.Dialect.(interface{ Header() http.Header }); has {
		cfg.Header = own.Header()
	}
	cfg.Header.Set("User-Agent", userAgent())
	cfg.Header.Set("X-Headrace-Priority", "batch")
	cfg.Header.Set("X-Headrace-Client", clientName(b.flags.OutputName()))
	cfg.Header.Set("X-Headrace-Max-Wait", throughWait)
	cfg.Heard = b.line.noteAnswer
	if err := b.makeFleet(cfg); err != nil {
		return exit.Refuse("--through %s: %s", b.flags.Through, configFault(err))
	}
	b.Note(event.Other, fmt.Sprintf("calls go through headrace serve at %s, which paces them", b.flags.Through))
	return nil
}

// A line knows how long calls wait in headrace serve before they leave. Any goroutine may use it.
type waitInServe struct {
	mu    sync.Mutex
	mean  time.Duration // of the latest calls
	calls time.Duration // their number, up to lately
}

// meanOver is the number of calls over which the mean wait goes.
const meanOver = 16

// noteAnswer adds the wait that an answer reports to the mean. Answers of other servers report none.
func (l *waitInServe) noteAnswer(h http.Header) {
	ms, err := strconv.ParseUint(h.Get("X-Headrace-Waited-Ms"), 10, 31)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = min(l.calls+1, meanOver)
	l.mean += (time.Duration(ms)*time.Millisecond - l.mean) / l.calls
}

// InLine returns how long the latest calls have waited in headrace serve, as a mean; 0: not at all, or they do not go through it.
func (b *Account) InLine() time.Duration {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	return b.line.mean
}

// serveTransport makes calls of headrace serve. If nobody answers there, its error names the server: the provider is not
// what fails then.
type serveTransport struct {
	*http.Transport
	address string
}

// RoundTrip makes one call.
func (t *serveTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(req)
	if failed, is := errors.AsType[*net.OpError](err); is && failed.Op == "dial" {
		err = fmt.Errorf("headrace serve at %s has ended, and its calls wait until it is back: %w", t.address, err)
	}
	return resp, err
}

// transportTo returns the transport to headrace serve at an address, the base URL for it, and the name by
// which its token is kept.
func (b *Account) transportTo(address string) (base, tokenName string, transport *http.Transport, err error) {
	base = strings.TrimRight(address, "/")
	tokenName = strings.TrimPrefix(strings.TrimPrefix(base, "http://"), "https://")
	transport = provider.NewHTTPTransport(b.flags.MostConcurrency())
	transport.Proxy = nil // it is this user's own server
	if b.tls != nil {
		transport.TLSClientConfig = b.tls
	}
	if socket, is := strings.CutPrefix(base, settings.SocketPrefix); is {
		full, err := filepath.Abs(socket)
		if err != nil {
			return "", "", nil, exit.Refuse("--through %s: %v", base, err)
		}
		base, tokenName = "http://localhost", full
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", full)
		}
	}
	return base, tokenName, transport, nil
}

// findServe looks for a headrace serve with this run's key, and sends the calls through it if it lets them
// in. Otherwise a notice says why the run calls the provider.
func (b *Account) findServe() (through bool) {
	address := serveWith(b.Runtime, cmp.Or(b.key(), b.Identity()))
	if address == "" {
		b.Note(event.Other, "--share: no headrace serve on this machine has this key; calls go to the provider")
		return false
	}
	base, tokenName, transport, err := b.transportTo(address)
	var proof auth.Source = auth.None{}
	if token, _ := b.tokenAt(tokenName); err == nil && token != "" {
		proof, err = auth.Bearer(token)
	}
	if err == nil {
		err = b.checkServe(base, transport, proof)
	}
	if err != nil {
		b.refusedAt = address
		b.Note(event.Other, fmt.Sprintf("--share: headrace serve at %s does not let this run in; calls go to the provider", address))
		return false
	}
	b.flags.GoThrough(address)
	return true
}

// tokenAt returns the token that a server keeps for this user, and its file. It is "" if there is none, and
// the server may then need none.
func (b *Account) tokenAt(tokenName string) (token, path string) {
	if b.Runtime == "" || disk.CheckFolder(b.Runtime) != nil {
		return "", ""
	}
	path = TokenPath(b.Runtime, tokenName)
	text, err := os.ReadFile(path) //nolint:gosec // the user's own
	if err != nil {
		return "", ""
	}
	return strings.TrimSpace(string(text)), path
}

// tokenFor returns the token of a server; "" if there is none. It is in the file or variable that the user
// names, or in the file that the server keeps.
func (b *Account) tokenFor(tokenName string) (token string, err error) {
	path := b.flags.KeyFile
	switch {
	case b.flags.Share:
		token, b.Proven = b.tokenAt(tokenName) // the user names where the provider's key is
		return token, nil
	case b.flags.SendsNoKey():
		return "", nil
	case path == "" && b.flags.KeyEnvGiven:
		value, _ := b.Env(b.flags.KeyEnv)
		b.Proven = b.flags.KeyEnv
		return strings.TrimSpace(value), nil
	case path == "":
		token, b.Proven = b.tokenAt(tokenName)
		return token, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user's own
	if err != nil {
		return "", keyFileFault("--api-key-file", path, err)
	}
	b.Proven = path
	return strings.TrimSpace(string(text)), nil
}

// checkServe asks whether headrace serve is at the address, and lets this run in.
func (b *Account) checkServe(base string, transport *http.Transport, proof auth.Source) error {
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(b.ctx, helloWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/headrace/hello", http.NoBody)
	if err != nil {
		return exit.Refuse("--through %s: it is not an address: want http://127.0.0.1:8470 or unix:PATH", b.flags.Through)
	}
	if err := proof.Apply(ctx, req, nil); err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return exit.Refuse("--through %s: nobody answers there: start headrace serve, or correct the address", b.flags.Through)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	var hello struct {
		Version int  `json:"headrace"`
		Batch   bool `json:"batch"`
	}
	const most = 1 << 16 // bytes: no greeting of ours is as long
	err = json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&hello)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return exit.Refuse("--through %s: the server does not know the token of this run: put it into a file, and name that with --api-key-file", b.flags.Through)
	case resp.StatusCode != http.StatusOK || err != nil || hello.Version == 0 || !hello.Batch:
		return exit.Refuse("--through %s: that is not headrace serve: to call another server, use --base-url", b.flags.Through)
	}
	return nil
}

// clientName makes the name of a client from that of an output, in characters that headers may have.
func clientName(output string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, filepath.Base(output))
	return name[:min(len(name), 64)] // door.MaxName: serve takes no longer name
}
