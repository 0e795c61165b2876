package bus

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/disk"
)

// Bounds of the contents of a hub's directory.
const (
	// MinToken is the least length of a token in bytes: 128 bits take 32 in hex and 22 in base64.
	MinToken = 16
	// maxFailedStarts is the number of early ends in a row after which the store counts as the cause. One or
	// two may come from somebody who kills the process. A wrong guess loses nothing.
	maxFailedStarts = 3
	// settleAfter is the time after which a running server's start no longer counts as failed.
	settleAfter = 3 * time.Second
	// maxAside bounds the stores kept after they were put aside.
	maxAside = 3
)

func storeDir(dir string) string { return filepath.Join(dir, "jetstream") }

// putAside moves the store out of the way, and says so. If the store cannot be moved, the start that follows fails.
func (h *Hub) putAside(why error) {
	aside, err := moveAside(storeDir(h.config.Dir))
	if err != nil {
		h.log.tell(fmt.Errorf("bus: hub: the store is broken (%w) and cannot be put aside: %w", why, err))
		return
	}
	h.log.tell(fmt.Errorf("bus: hub: the store is put aside as %s: %w", aside, why))
}

// moveAside renames a folder to the first free <folder>.broken-<k>, and removes the oldest beyond maxAside.
func moveAside(folder string) (string, error) {
	for k := 1; ; k++ {
		aside := fmt.Sprintf("%s.broken-%d", folder, k)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if k > maxAside {
			_ = os.RemoveAll(fmt.Sprintf("%s.broken-%d", folder, k-maxAside)) // it costs room, no more
		}
		return aside, os.Rename(folder, aside) // it replaces nothing; if power is lost, the next start does it again
	}
}

// A startCount counts the starts in a row that ended before the server had lived for settleAfter. A broken
// store can make the server panic and end the process, so the count is written to disk beforehand.
type startCount struct{ dir string }

func (c startCount) path() string { return filepath.Join(c.dir, "starts") }

// begin counts one more start, and returns how many failed before.
func (c startCount) begin() (failed int, err error) {
	data, _ := os.ReadFile(c.path()) // none, or unreadable: none failed
	failed, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	next := failed + 1
	if failed >= maxFailedStarts {
		next = 1 // the store is put aside, and the count begins anew
	}
	return failed, disk.Real().Write(c.path(), []byte(strconv.Itoa(next)), 0o600)
}

// giveUp makes the next start put the store aside.
func (c startCount) giveUp() {
	_ = disk.Real().Write(c.path(), []byte(strconv.Itoa(maxFailedStarts)), 0o600) // or it will be found out again
}

func (c startCount) end() { _ = os.Remove(c.path()) } // at worst one start too many is counted

// tokenName is the file of the admin's token.
const tokenName = "token"

// tokenOf returns the token that was given, or the one of TLSDir, or the one of Dir. A single hub makes the latter if it is
// missing. Hubs of three must share one, so none of them makes it.
func (c HubConfig) tokenOf() (token string, made bool, err error) {
	if c.Token != "" {
		return c.Token, false, tokenFits(c.Token)
	}
	for _, dir := range []string{c.TLSDir, c.Dir} {
		if dir == "" {
			continue
		}
		if token, err := readToken(dir); !errors.Is(err, os.ErrNotExist) {
			return token, false, err
		}
	}
	if len(c.Peers) > 0 {
		return "", false, ErrShared
	}
	token, err = makeToken(c.Dir)
	return token, err == nil, err
}

// ErrShared is the kind of error of a hub of three that has no token.
var ErrShared = errors.New("the three hubs must share a token: run `headrace hub init DIR` once, copy DIR to all three, and start each with --tls-dir DIR")

// readToken reads the token of a folder; an empty file counts as missing.
func readToken(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, tokenName))
	token := strings.TrimSpace(string(data))
	if err == nil && token == "" {
		err = os.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return token, tokenFits(token)
}

func makeToken(dir string) (string, error) {
	token := newToken()
	return token, disk.Real().Write(filepath.Join(dir, tokenName), []byte(token+"\n"), 0o600)
}

// MakeShared makes what three hubs share, a token and an authority, in a folder. It keeps existing files.
func MakeShared(dir string, now time.Time) error {
	if _, err := MakeAuthority(dir, now); err != nil {
		return err
	}
	_, err := readToken(dir)
	if errors.Is(err, os.ErrNotExist) {
		_, err = makeToken(dir)
	}
	if err != nil {
		return fmt.Errorf("bus: token in %s: %w", dir, err)
	}
	return nil
}

func tokenFits(token string) error {
	if len(token) < MinToken {
		return fmt.Errorf("the token is shorter than %d bytes", MinToken)
	}
	if r, _ := roleOf(token); r != AdminRole {
		return fmt.Errorf("the token of a hub must be an admin's, and this one's role is %s", r)
	}
	return nil
}

// newToken has 192 bits, in letters that need no escape in a URL.
func newToken() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// lastPort returns the port of the last start if it is known and free, and otherwise 0.
func lastPort(dir, host string) int {
	data, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	_ = l.Close()
	return port
}
