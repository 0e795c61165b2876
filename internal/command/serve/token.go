package serve

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/disk"
)

// tokenBytes is the chance in a token: nobody guesses 24 bytes.
const tokenBytes = 24

// tokenShape matches the tokens of serve.
var tokenShape = regexp.MustCompile(fmt.Sprintf(`^hr-[0-9a-f]{%d}$`, 2*tokenBytes))

// newToken makes a token.
func newToken() string {
	chance := make([]byte, tokenBytes)
	_, _ = rand.Read(chance) // it never fails
	return "hr-" + hex.EncodeToString(chance)
}

// tokenHash returns what a file of clients has in place of a token.
func tokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// tokenOf returns the token in a file, and makes both if there is none. So programs can keep their token when serve
// starts again.
func tokenOf(path string) (token string, made bool, err error) {
	if token, err = readToken(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return token, false, err
	}
	token = newToken()
	if text := settings.NoFolder(path); text != "" {
		return "", false, exit.Refuse("--token-file: %s", text)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|disk.NoFollow, 0o600) //nolint:gosec // the user names it
	if err != nil {
		return "", false, exit.Refuse("--token-file: %s: %v: name another file", path, disk.Bare(err))
	}
	_, err = file.WriteString(token + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path)
		return "", false, exit.Refuse("--token-file: %s: %v: name another file", path, disk.Bare(err))
	}
	return token, true, nil
}

// readToken returns the token in a file. It refuses a file that others may read.
func readToken(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0) //nolint:gosec // the user names it
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", exit.Refuse("--token-file: %s: %v: name another file", path, disk.Bare(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return "", exit.Refuse("--token-file: %s: others may read it: chmod 600 %s", path, settings.ShellQuote(path))
	}
	text := make([]byte, 1024) // more than a token and its line feed
	n, err := io.ReadFull(file, text)
	token := string(bytes.TrimSpace(text[:n]))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !tokenShape.MatchString(token) {
		return "", exit.Refuse("--token-file: %s has no token of headrace serve: remove it, or name another file", path)
	}
	return token, nil
}

// tokenPath returns the file of an address's token, in the folder in which processes of this user find each other. It
// returns "" if there is no such folder.
func tokenPath(runtime, address string) (string, error) {
	if runtime == "" {
		return "", nil
	}
	if err := disk.OwnFolder(runtime); err != nil {
		return "", exit.Refuse("%s: %v: name a file for the token with --token-file", runtime, disk.Bare(err))
	}
	return account.TokenPath(runtime, address), nil
}
