package ctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/socket"
	"github.com/headrace/headrace/internal/disk"
)

var (
	errOver = errors.New("the run is over")
	// ErrNone says that no process of this user takes commands there.
	ErrNone = errors.New("there is nothing to control")
)

// Names of sockets.
const (
	prefix, suffix = "ctl-", ".sock"
	digits         = 16 // of the hash: nobody has so many outputs that two would meet
)

// OfFile returns the name under which a file's run is found. It is the same from every folder, and through a link to
// the file's folder.
func OfFile(file string) (string, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil {
		full = filepath.Join(folder, filepath.Base(full))
	}
	return socketName("file " + full), nil
}

// OfAddress returns the name under which headrace serve is found: http://HOST:PORT, HOST:PORT, or unix:PATH.
func OfAddress(address string) string {
	_, rest, is := strings.Cut(address, "://")
	if !is {
		rest = address
	}
	if path, is := strings.CutPrefix(rest, "unix:"); is {
		if full, err := filepath.Abs(path); err == nil {
			rest = "unix:" + full
		}
	} else if host, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/")); err == nil {
		if host == "" || host == "localhost" || net.ParseIP(host).IsUnspecified() {
			host = "127.0.0.1" // a server at all addresses of the machine is at this one, too
		}
		rest = net.JoinHostPort(host, port)
	}
	return socketName("address " + rest)
}

// isAddress reports whether a target is an address, and not the name of a file.
func isAddress(target string) bool {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "unix:") {
		return true
	}
	_, port, err := net.SplitHostPort(target)
	return err == nil && port != "" && strings.Trim(port, "0123456789") == ""
}

// socketName returns the name of a socket for a text that identifies its target. The hash gives each name the same
// short length.
func socketName(text string) string {
	sum := sha256.Sum256([]byte("headrace ctl\n" + text))
	return prefix + hex.EncodeToString(sum[:])[:digits] + suffix
}

// socketPath returns the path of a socket in a folder. Where that path would be too long for a socket, it returns one
// in a folder with a short name.
func socketPath(folder, name string) (string, error) {
	if folder == "" {
		return "", errors.New("there is no folder for it")
	}
	if path := filepath.Join(folder, name); len(path) <= socket.Longest {
		return path, nil
	}
	path := filepath.Join("/tmp", fmt.Sprintf("headrace-%d", os.Getuid()), name)
	if len(path) > socket.Longest {
		return "", fmt.Errorf("the path %s is too long for a socket", path)
	}
	return path, nil
}

// clientWait is longer than a target has for a command.
const clientWait = commandWait + 5*time.Second

// Send asks the target of that name to carry out a command, and returns its answer. The error is ErrNone, or says why
// the command was refused.
func Send(ctx context.Context, folder, name string, list []string) (Answer, error) {
	var answer Answer
	socketAt, err := socketPath(folder, name)
	if err != nil {
		return answer, errors.Join(ErrNone, err)
	}
	if err := disk.CheckFolder(filepath.Dir(socketAt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return answer, fmt.Errorf("nothing of yours can be found in %s: %w", filepath.Dir(socketAt), disk.Bare(err))
	}
	body, _ := json.Marshal(request{list}) // text cannot fail
	ctx, cancel := context.WithTimeout(ctx, clientWait)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return socket.Dial(ctx, socketAt)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://headrace"+path, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, socket.ErrNoOne):
		return answer, ErrNone
	case errors.Is(err, context.DeadlineExceeded):
		return answer, fmt.Errorf("it does not answer within %v: it may be stopped, or very busy", clientWait)
	case err != nil:
		if in := new(url.Error); errors.As(err, &in) { // its address is no help
			err = in.Err
		}
		return answer, fmt.Errorf("it does not answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("its answer is not ours: %w", err)
	}
	if answer.Refused != "" {
		return answer, errors.New(answer.Refused)
	}
	return answer, nil
}
